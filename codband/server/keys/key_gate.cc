#include "codband/server/keys/key_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace codband::server {

KeyGate::KeyGate(KeyGateOptions options)
    : file_(std::move(options.file)),
      admin_(options.admin_key.empty()
                 ? std::nullopt
                 : std::optional<KeyRecord>(MakeKeyRecord("", Access::kAdmin, options.admin_key))),
      nobody_(MakeKeyRecord("", Access::kRank, "")),
      now_(std::move(options.now)),
      records_(std::make_shared<const Records>()),
      failures_(options.max_failures) {}

Result<std::unique_ptr<KeyGate>> KeyGate::Open(KeyGateOptions options) {
  std::unique_ptr<KeyGate> gate(new KeyGate(std::move(options)));
  const auto read = gate->Reload(When::kNow);
  const std::string how =
      fmt::format("'codband keys add NAME --role admin --file {}' makes one", gate->file_.string());
  if (!read.ok()) {
    return Status(read.status().code(),
                  read.status().code() == StatusCode::kNotFound
                      ? fmt::format("keys.file: {}; {}", read.status().message(), how)
                      : fmt::format("keys.file: {}", read.status().message()));
  }
  if (read.value().value_or(0) == 0 && !gate->admin_) {
    return Status::InvalidArgument(
        fmt::format("keys.file: {} has no key; {}", gate->file_.string(), how));
  }
  return gate;
}

KeyGate::Stamp KeyGate::StampOfFile() const {
  struct stat facts {};
  if (::stat(file_.c_str(), &facts) != 0) return {};
  return {.device = facts.st_dev,
          .inode = facts.st_ino,
          .size = facts.st_size,
          .changed_ns = facts.st_ctim.tv_sec * 1'000'000'000 + facts.st_ctim.tv_nsec};
}

Result<std::optional<std::size_t>> KeyGate::Reload(When when) {
  if (file_.empty()) return std::optional<std::size_t>();
  const Stamp stamp = StampOfFile();
  if (when == When::kChanged && stamp == stamp_) return std::optional<std::size_t>();
  stamp_ = stamp;  // of the file before it is read: what changes meanwhile is read again
  auto records = ReadKeyFile(file_);
  if (!records.ok()) return records.status();
  const std::size_t count = records.value().size();
  {
    const std::lock_guard lock(mutex_);
    records_ = std::make_shared<const Records>(std::move(records).value());
  }
  generation_.fetch_add(1, std::memory_order_release);
  return std::optional<std::size_t>(count);
}

std::optional<Access> KeyGate::Find(const Records& records, std::string_view key) const {
  const auto named = std::ranges::find(records, NameInKey(key), &KeyRecord::name);
  const bool of_file = IsKeyOf(named == records.end() ? nobody_ : *named, key);
  const bool of_admin = IsKeyOf(admin_ ? *admin_ : nobody_, key);
  if (admin_ && of_admin) return Access::kAdmin;
  if (named != records.end() && of_file) return named->role;
  return std::nullopt;
}

Gatekeeper::Verdict KeyGate::Check(const boost::asio::ip::address& client, std::string_view key) {
  // Before the keys are taken: if they are replaced meanwhile, the verdict is known to be old.
  Verdict verdict{.generation = generation()};
  std::shared_ptr<const Records> records;
  const auto now = now_();
  {
    const std::lock_guard lock(mutex_);
    const auto wait = failures_.Wait(client, now);
    if (wait > wait.zero()) {
      verdict.retry_after_s = std::chrono::ceil<std::chrono::seconds>(wait).count();
      return verdict;
    }
    records = records_;
  }
  verdict.role = Find(*records, key);
  if (!verdict.role) {
    const std::string hash = HashKey(nobody_.salt, key);
    const std::lock_guard lock(mutex_);
    failures_.Note(client, std::strtoull(hash.substr(0, 16).c_str(), nullptr, 16), now);
  }
  return verdict;
}

}  // namespace codband::server
