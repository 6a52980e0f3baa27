#include "codband/server/keys/key_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "codband/base/clock.h"

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

const KeyRecord* KeyGate::Find(const Records& records, std::string_view key) const {
  const auto named = std::ranges::find(records, NameInKey(key), &KeyRecord::name);
  const bool of_file = IsKeyOf(named == records.end() ? nobody_ : *named, key);
  const bool of_admin = IsKeyOf(admin_ ? *admin_ : nobody_, key);
  if (admin_ && of_admin) return &*admin_;
  if (named != records.end() && of_file) return &*named;
  return nullptr;
}

Gatekeeper::Verdict KeyGate::Check(const boost::asio::ip::address& client, std::string_view key) {
  KeyRecord ignored;
  return Check(client, key, ignored);
}

Gatekeeper::Verdict KeyGate::Check(const boost::asio::ip::address& client, std::string_view key,
                                   KeyRecord& found) {
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
  const KeyRecord* const record = Find(*records, key);
  if (record != nullptr) {
    verdict.role = record->role;
    found = *record;
    const std::lock_guard lock(mutex_);
    last_use_ms_[record->name] = UnixMillis();
  } else {
    const std::string hash = HashKey(nobody_.salt, key);
    const std::lock_guard lock(mutex_);
    failures_.Note(client, std::strtoull(hash.substr(0, 16).c_str(), nullptr, 16), now);
  }
  return verdict;
}

std::variant<Gatekeeper::Opened, HttpError> KeyGate::OpenSession(
    const boost::asio::ip::address& client, std::string_view key) {
  KeyRecord record;
  const Verdict verdict = Check(client, key, record);
  if (const auto error = VerdictError(verdict)) return *error;
  const std::lock_guard lock(mutex_);
  Opened opened{.token = sessions_.Open(record, now_())};
  opened.facts = {
      .role = record.role, .name = record.name, .csrf = sessions_.Find(opened.token, now_())->csrf};
  return opened;
}

std::optional<Gatekeeper::SessionFacts> KeyGate::FindSession(std::string_view token) {
  const std::lock_guard lock(mutex_);
  const Sessions::Session* const session = sessions_.Find(token, now_());
  if (session == nullptr) return std::nullopt;
  // A session lives no longer than its key.
  const auto same = [&](const KeyRecord& record) {
    return record.name == session->key.name && record.hash == session->key.hash &&
           record.role == session->key.role;
  };
  if (!(admin_ && same(*admin_)) && std::ranges::none_of(*records_, same)) {
    sessions_.Close(token);
    return std::nullopt;
  }
  return SessionFacts{.role = session->key.role, .name = session->key.name, .csrf = session->csrf};
}

void KeyGate::CloseSession(std::string_view token) {
  const std::lock_guard lock(mutex_);
  sessions_.Close(token);
}

std::vector<Gatekeeper::KeyUse> KeyGate::ListKeys() {
  const std::lock_guard lock(mutex_);
  std::vector<KeyUse> keys;
  const auto add = [&](const KeyRecord& record) {
    KeyUse& use = keys.emplace_back(KeyUse{.name = record.name, .role = record.role});
    const auto found = last_use_ms_.find(record.name);
    if (found != last_use_ms_.end()) use.last_use_ms = found->second;
  };
  if (admin_) add(*admin_);
  for (const KeyRecord& record : *records_) add(record);
  return keys;
}

}  // namespace codband::server
