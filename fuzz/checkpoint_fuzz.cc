// Any bytes in the tables that a checkpoint writes are refused or loaded, never a crash: what all
// users share, a user's record, a person. The input is three strings, each with its length before.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/engine/records.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/registry.h"

namespace {

using namespace codband;

constexpr std::size_t kDim = 2;
constexpr UserId kUser = 1;

class OneUser final : public UserArchive {
 public:
  explicit OneUser(std::string bytes) : bytes_(std::move(bytes)) {}
  bool Read(UserId user, std::string& bytes) const override {
    if (user != kUser) return false;
    bytes = bytes_;
    return true;
  }

 private:
  std::string bytes_;
};

void ReadPerson(std::string_view bytes) {
  ByteReader in(bytes);
  engine::Person person;
  person.Load(in);
  in.ExpectEnd();
  if (!in.ok()) return;
  // A record of before is saved with what was added since; what is saved is read back as it is.
  ByteWriter out;
  person.Save(out);
  ByteReader saved(out.bytes());
  engine::Person again;
  again.Load(saved);
  saved.ExpectEnd();
  ByteWriter twice;
  again.Save(twice);
  if (!saved.ok() || twice.bytes() != out.bytes()) std::abort();
  person.AddMove({.time_ms = person.since_ms(), .from = 0, .to = 1});
}

void ReadShared(const engine::CheckpointRecord& checkpoint, const std::string& user_bytes) {
  const auto policy = std::move(MakePolicy("codband", {.dim = kDim})).value();
  if (!CheckSpecChange(checkpoint.spec, policy->spec(), {.dim = kDim}).ok()) return;
  PagedUsers& users = *policy->paged_users();
  ByteReader in(checkpoint.shared);
  users.LoadShared(in);
  in.ExpectEnd();
  if (!in.ok()) return;
  const OneUser archive(user_bytes);
  users.SetArchive(&archive);
  const Status sound = users.CheckUsers([&](const PagedUsers::VisitRecord& visit) {
    visit(kUser, user_bytes);
    return Status();
  });
  const std::vector<double> arms = {1, 0, 0, 1};
  Ranking ranking;
  try {
    for (UserId user = kUser; user < kUser + 2; ++user) {
      policy->Rank(user, {arms, kDim}, {1, user}, 0.1, ranking);
      static_cast<void>(policy->DescribeUser(user));
      policy->Learn(ranking.decision, 0.5, {1, user});
      users.SaveChangedUsers([](UserId, const std::string&) {});
      policy->Forget(user);
    }
    static_cast<void>(policy->DescribeModels());
  } catch (const InternalError&) {
    // A record that does not fit the rest is reported, not undefined. One that was found sound
    // may still hold numbers that no run could have produced.
    static_cast<void>(sound);
  } catch (const std::bad_optional_access&) {
    if (sound.ok()) std::abort();  // the user is on a model that does not exist
  }
  ByteWriter out;
  users.SaveShared(out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteReader in({reinterpret_cast<const char*>(data), size});
  const std::string shared = in.String("checkpoint");
  const std::string user = in.String("user");
  const std::string person = in.String("person");
  ReadPerson(person);
  const auto checkpoint = engine::CheckpointRecord::Decode(shared);
  if (!checkpoint.ok()) return 0;
  if (checkpoint.value().Encode() != shared) std::abort();
  ReadShared(checkpoint.value(), user);
  return 0;
}
