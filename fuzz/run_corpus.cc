// Feeds a fuzz target without a fuzzer: every file of a directory, then mutations of them, the same
// on every run. A crash, an abort or a sanitizer's complaint is the failure; what caused it is left
// in the file crash-input, to be kept as a seed once it is mended.
//   x_corpus DIRECTORY MUTATIONS
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> ReadFiles(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

std::span<const std::uint8_t> running;

// Only what a signal handler may call.
void KeepInput(int signal) {
  const int fd = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0 && ::write(fd, running.data(), running.size()) >= 0) ::close(fd);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(const std::string& input) {
  // A copy of its own size, so that a read past the end is noticed.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  running = bytes;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string Next() {
    std::string input = Any(seeds_);
    for (std::size_t changes = 1 + Below(4); changes > 0; --changes) Change(input);
    return input;
  }

 private:
  std::size_t Below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  template <typename T>
  const T& Any(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }

  void Change(std::string& input) {
    const std::size_t at = Below(input.size() + 1);
    const std::size_t count = std::min(Below(16), input.size() - at);
    switch (Below(7)) {
      case 0:
        input.resize(at);
        break;
      case 1:
        input.erase(at, count);
        break;
      case 2:
        input.insert(at, input.substr(at, count));
        break;
      case 3:
        input.insert(at, 1, static_cast<char>(random_()));
        break;
      case 4: {  // a part of another one
        const std::string& other = Any(seeds_);
        input.replace(at, std::string::npos, other.substr(Below(other.size())));
        break;
      }
      case 5: {  // numbers that break sums, sizes and comparisons
        static const std::vector<std::string> numbers = {
            std::string(8, '\xff'), std::string(8, '\0'), std::string("\0\0\0\0\0\0\0\x80", 8),
            std::string("\0\0\0\0\0\0\xf0\x7f", 8), std::string("\x01\0\0\0\0\0\0\0", 8)};
        if (at + 8 <= input.size()) input.replace(at, 8, Any(numbers));
        break;
      }
      default:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ 1 << Below(8));
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_{20190707};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY MUTATIONS\n";
    return 2;
  }
  const std::vector<std::string> seeds = ReadFiles(argv[1]);
  if (seeds.empty()) {
    std::cerr << argv[1] << " holds no files\n";
    return 1;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, KeepInput);
  for (const std::string& seed : seeds) Run(seed);
  Mutator mutator(seeds);
  const long mutations = std::atol(argv[2]);
  for (long i = 0; i < mutations; ++i) Run(mutator.Next());
  std::cout << seeds.size() << " files and " << mutations << " mutations of them\n";
}
