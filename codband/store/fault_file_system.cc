#include "codband/store/fault_file_system.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "codband/store/fault_files.h"

namespace codband::store {
namespace {

using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::string Clean(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  for (auto at = path.find("//"); at != path.npos; at = path.find("//")) path.erase(at, 1);
  return path;
}

std::string Parent(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : path.substr(0, slash);
}

IOStatus NoSuchFile(const std::string& path) {
  return IOStatus::PathNotFound("No such file or directory", path);
}

class HeldLock final : public rocksdb::FileLock {
 public:
  explicit HeldLock(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace

FaultFileSystem::FaultFileSystem(std::uint64_t seed)
    : random_({.seed = seed, .event = 0}, 0), capacity_(kNoLimit) {
  names_["/"] = std::make_shared<Node>(Node{.directory = true, .data = {}, .old = {}});
  durable_ = names_;
}

void FaultFileSystem::SetFaults(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

void FaultFileSystem::SetCapacity(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

std::uint64_t FaultFileSystem::UsedBytes() const {
  const std::lock_guard lock(mutex_);
  return CountBytes();
}

std::uint64_t FaultFileSystem::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

std::uint64_t FaultFileSystem::CountBytes() const {
  std::uint64_t bytes = 0;
  std::set<const Node*> seen;
  for (const auto& [path, node] : names_) {
    if (seen.insert(node.get()).second) bytes += node->data.size();
  }
  return bytes;
}

bool FaultFileSystem::Happens(double chance) { return chance > 0 && random_.Uniform() < chance; }

IOStatus FaultFileSystem::Fail(const std::string& path, const char* what) {
  ++failures_;
  return IOStatus::IOError(what, path);
}

IOStatus FaultFileSystem::Find(const std::string& path, NodePtr& node) const {
  const auto found = names_.find(Clean(path));
  if (found == names_.end()) return NoSuchFile(path);
  node = found->second;
  return IOStatus::OK();
}

void FaultFileSystem::Apply(const NameChange& change, Names& names) {
  for (const auto& [path, node] : change) {
    if (node != nullptr) {
      names[path] = node;
    } else {
      names.erase(path);
    }
  }
}

void FaultFileSystem::Change(NameChange change) {
  Apply(change, names_);
  changes_.push_back(std::move(change));
}

IOStatus FaultFileSystem::Append(const std::string& path, Node& node, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const bool full = capacity_ != kNoLimit && CountBytes() + bytes.size() > capacity_;
  if (!full && !Happens(faults_.write_error)) {
    node.data += bytes;
    return IOStatus::OK();
  }
  // A short write.
  const std::uint64_t used = full ? CountBytes() : 0;
  const std::uint64_t room = full ? (capacity_ > used ? capacity_ - used : 0) : bytes.size();
  node.data += bytes.substr(0, full ? room : (Happens(0.5) ? random_.Below(room + 1) : 0));
  ++failures_;
  if (!full) return IOStatus::IOError("Input/output error", path);
  IOStatus status = IOStatus::NoSpace("No space left on device", path);
  status.SetRetryable(true);
  return status;
}

IOStatus FaultFileSystem::Overwrite(const std::string& path, Node& node, std::uint64_t offset,
                                    std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (Happens(faults_.write_error)) return Fail(path, "Input/output error");
  if (!node.old) node.old = node.data.substr(0, node.synced);
  if (node.data.size() < offset + bytes.size()) node.data.resize(offset + bytes.size());
  std::ranges::copy(bytes, node.data.begin() + static_cast<std::ptrdiff_t>(offset));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::Truncate(Node& node, std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (size < node.synced) {
    if (!node.old) node.old = node.data.substr(0, node.synced);
    node.synced = size;
  }
  node.data.resize(size);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::Sync(const std::string& path, Node& node) {
  std::chrono::microseconds delay{0};
  {
    const std::lock_guard lock(mutex_);
    if (Happens(faults_.slow_sync)) delay = faults_.slow_sync_time;
  }
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  const std::lock_guard lock(mutex_);
  if (Happens(faults_.sync_error)) return Fail(path, "Input/output error");
  node.synced = node.data.size();
  node.old.reset();
  return IOStatus::OK();
}

IOStatus FaultFileSystem::SyncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (Happens(faults_.sync_error)) return Fail(path, "Input/output error");
  std::erase_if(changes_, [&](const NameChange& change) {
    const bool here =
        std::ranges::any_of(change, [&](const auto& name) { return Parent(name.first) == path; });
    if (here) Apply(change, durable_);
    return here;
  });
  return IOStatus::OK();
}

IOStatus FaultFileSystem::Read(const std::string& path, const Node& node, std::uint64_t offset,
                               std::size_t count, Slice* result, char* scratch) {
  const std::lock_guard lock(mutex_);
  if (Happens(faults_.read_error)) return Fail(path, "Input/output error");
  const std::size_t from = std::min<std::uint64_t>(offset, node.data.size());
  const std::size_t got = std::min(count, node.data.size() - from);
  std::memcpy(scratch, node.data.data() + from, got);
  *result = Slice(scratch, got);
  return IOStatus::OK();
}

// What is durable, and some of what was written since: nothing, all, the beginning, or any sectors
// of it, with zeros in the place of those that did not make it.
std::string FaultFileSystem::WhatIsLeft(const Node& node, RandomStream& random) {
  if (node.old) return random.Below(2) == 0 ? *node.old : node.data;
  const std::uint64_t fresh = node.data.size() - node.synced;
  const std::uint64_t way = random.Below(4);
  if (fresh == 0 || way == 0) return node.data.substr(0, node.synced);
  if (way == 1) return node.data;
  std::string left = node.data.substr(0, node.synced + random.Below(fresh + 1));
  if (way == 2) return left;
  for (std::uint64_t at = node.synced; at < left.size();) {
    const std::uint64_t end =
        std::min<std::uint64_t>(left.size(), (at / kSectorBytes + 1) * kSectorBytes);
    if (random.Below(2) == 0) std::fill(left.data() + at, left.data() + end, '\0');
    at = end;
  }
  return left;
}

// The durable names, and of the changes since: none, all, the first ones, or any.
FaultFileSystem::Names FaultFileSystem::NamesLeft(RandomStream& random) const {
  Names names = durable_;
  const std::uint64_t way = random.Below(4);
  const std::uint64_t first = way == 0   ? 0
                              : way == 2 ? random.Below(changes_.size() + 1)
                                         : changes_.size();
  for (std::uint64_t i = 0; i < first; ++i) {
    if (way != 3 || random.Below(2) == 0) Apply(changes_[i], names);
  }
  // What is in a directory goes with it; parents come before their children.
  for (auto name = names.begin(); name != names.end();) {
    name = names.contains(Parent(name->first)) ? std::next(name) : names.erase(name);
  }
  return names;
}

std::shared_ptr<FaultFileSystem> FaultFileSystem::CutPower(std::uint64_t seed) const {
  auto left = std::make_shared<FaultFileSystem>(seed);
  RandomStream random({.seed = seed, .event = 0}, 1);
  const std::lock_guard lock(mutex_);
  std::unordered_map<const Node*, NodePtr> copies;
  for (const auto& [path, node] : NamesLeft(random)) {
    NodePtr& copy = copies[node.get()];
    if (copy == nullptr) {
      copy = std::make_shared<Node>(
          Node{.directory = node->directory, .data = WhatIsLeft(*node, random), .old = {}});
      copy->synced = copy->data.size();
    }
    left->names_[path] = copy;
  }
  left->durable_ = left->names_;
  return left;
}

IOStatus FaultFileSystem::NewSequentialFile(const std::string& path, const FileOptions&,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                            Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (found.ok()) *file = std::make_unique<FaultFile>(*this, path, std::move(node));
  return found;
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& path, const FileOptions&,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                              Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (found.ok()) *file = std::make_unique<FaultFile>(*this, path, std::move(node));
  return found;
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path, const FileOptions&,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file,
                                          Context*) {
  const std::lock_guard lock(mutex_);
  const std::string name = Clean(path);
  if (!names_.contains(Parent(name))) return NoSuchFile(path);
  if (Happens(faults_.write_error)) return Fail(path, "Input/output error");
  auto node = std::make_shared<Node>();
  Change({{name, node}});
  *file = std::make_unique<FaultFile>(*this, path, std::move(node));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::ReopenWritableFile(const std::string& path, const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             Context* context) {
  {
    const std::lock_guard lock(mutex_);
    NodePtr node;
    if (Find(path, node).ok()) {
      *file = std::make_unique<FaultFile>(*this, path, std::move(node));
      return IOStatus::OK();
    }
  }
  return NewWritableFile(path, options, file, context);
}

IOStatus FaultFileSystem::NewRandomRWFile(const std::string& path, const FileOptions&,
                                          std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                          Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (found.ok()) *file = std::make_unique<FaultRandomFile>(*this, path, std::move(node));
  return found;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const Options&,
                                       std::unique_ptr<rocksdb::FSDirectory>* directory, Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (found.ok()) *directory = std::make_unique<FaultDirectory>(*this, Clean(path));
  return found;
}

IOStatus FaultFileSystem::FileExists(const std::string& path, const Options&, Context*) {
  const std::lock_guard lock(mutex_);
  return names_.contains(Clean(path)) ? IOStatus::OK() : IOStatus::NotFound(path);
}

IOStatus FaultFileSystem::GetChildren(const std::string& path, const Options&,
                                      std::vector<std::string>* names, Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  names->clear();
  if (!found.ok()) return found;
  const std::string parent = Clean(path);
  for (const auto& [name, child] : names_) {
    if (name != "/" && Parent(name) == parent) names->push_back(name.substr(name.rfind('/') + 1));
  }
  return IOStatus::OK();
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const Options&, Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (found.ok()) Change({{Clean(path), nullptr}});
  return found;
}

IOStatus FaultFileSystem::CreateDir(const std::string& path, const Options&, Context*) {
  const std::lock_guard lock(mutex_);
  const std::string name = Clean(path);
  if (names_.contains(name)) return IOStatus::IOError("File exists", path);
  if (!names_.contains(Parent(name))) return NoSuchFile(path);
  Change({{name, std::make_shared<Node>(Node{.directory = true, .data = {}, .old = {}})}});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::CreateDirIfMissing(const std::string& path, const Options& options,
                                             Context* context) {
  return FileExists(path, options, context).ok() ? IOStatus::OK()
                                                 : CreateDir(path, options, context);
}

IOStatus FaultFileSystem::DeleteDir(const std::string& path, const Options& options,
                                    Context* context) {
  std::vector<std::string> children;
  const IOStatus listed = GetChildren(path, options, &children, context);
  if (!listed.ok()) return listed;
  if (!children.empty()) return IOStatus::IOError("Directory not empty", path);
  return DeleteFile(path, options, context);
}

IOStatus FaultFileSystem::GetFileSize(const std::string& path, const Options&, std::uint64_t* bytes,
                                      Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (found.ok()) *bytes = node->data.size();
  return found;
}

IOStatus FaultFileSystem::GetFileModificationTime(const std::string& path, const Options& options,
                                                  std::uint64_t* time, Context* context) {
  *time = 0;
  return FileExists(path, options, context);
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to, const Options&,
                                     Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(from, node);
  if (!found.ok()) return found;
  if (node->directory) return IOStatus::NotSupported("this disk renames files alone", from);
  Change({{Clean(from), nullptr}, {Clean(to), node}});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::LinkFile(const std::string& from, const std::string& to, const Options&,
                                   Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(from, node);
  if (!found.ok()) return found;
  if (names_.contains(Clean(to))) return IOStatus::IOError("File exists", to);
  Change({{Clean(to), node}});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NumFileLinks(const std::string& path, const Options&,
                                       std::uint64_t* count, Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  if (!found.ok()) return found;
  *count = static_cast<std::uint64_t>(
      std::ranges::count_if(names_, [&](const auto& entry) { return entry.second == node; }));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::LockFile(const std::string& path, const Options&,
                                   rocksdb::FileLock** lock_out, Context*) {
  const std::lock_guard lock(mutex_);
  const std::string name = Clean(path);
  if (!locks_.insert(name).second) {
    return IOStatus::IOError("While lock file: lock hold by current process", path);
  }
  if (!names_.contains(name)) Change({{name, std::make_shared<Node>()}});
  *lock_out = new HeldLock(name);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::UnlockFile(rocksdb::FileLock* held, const Options&, Context*) {
  const std::lock_guard lock(mutex_);
  const std::unique_ptr<HeldLock> owned(static_cast<HeldLock*>(held));
  locks_.erase(owned->path());
  return IOStatus::OK();
}

IOStatus FaultFileSystem::GetTestDirectory(const Options&, std::string* path, Context*) {
  *path = "/";
  return IOStatus::OK();
}

IOStatus FaultFileSystem::GetAbsolutePath(const std::string& path, const Options&,
                                          std::string* absolute, Context*) {
  *absolute = path;
  return IOStatus::OK();
}

IOStatus FaultFileSystem::GetFreeSpace(const std::string&, const Options&, std::uint64_t* bytes,
                                       Context*) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = CountBytes();
  *bytes = capacity_ > used ? capacity_ - used : 0;
  return IOStatus::OK();
}

IOStatus FaultFileSystem::IsDirectory(const std::string& path, const Options&, bool* is, Context*) {
  const std::lock_guard lock(mutex_);
  NodePtr node;
  const IOStatus found = Find(path, node);
  *is = found.ok() && node->directory;
  return found;
}

}  // namespace codband::store
