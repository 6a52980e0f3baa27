#include "codband/engine/records.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace codband::engine {
namespace {

Decision ADecision() {
  return {.user = 0x8000000000000001,
          .arm = 3,
          .features = {1.5, -2, 0},
          .model = 12,
          .period = 4,
          .mean = 0.25,
          .width = 0.5,
          .score = 1e-300,
          .propensity = 0.125};
}

void ExpectEqual(const Decision& a, const Decision& b) {
  EXPECT_EQ(a.user, b.user);
  EXPECT_EQ(a.arm, b.arm);
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.period, b.period);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.score, b.score);
  EXPECT_EQ(a.propensity, b.propensity);
}

PendingDecision APending() {
  return {.state = PendingDecision::State::kDeferred,
          .time_ms = 1'700'000'000'000,
          .deadline_ms = 1'700'000'600'000,
          .learn = false,
          .user = "ann",
          .decision = ADecision(),
          .made_ms = 1'700'000'000'123,
          .fingerprint = 0xfedcba9876543210,
          .action = "y",
          .context = R"({"device": "phone"})",
          .candidates = {{"x", 0.25, {1, 2, 3}}, {"y", 0.75, {4, 5, 6}}}};
}

// As a version without wait clock and fingerprint wrote it.
std::string APendingOfBefore() {
  const std::string bytes = APending().Encode();
  return bytes.substr(0, bytes.size() - 3 * 8 - APending().action.size());
}

QuarantinedEntry AQuarantined() {
  return {.first = 5,
          .last = 7,
          .time_ms = 123,
          .reason = "x is inf",
          .forgets = true,
          .user = "ann",
          .event = 99,
          .reward = -2.5};
}

ClockRecord AClock() { return {.wait_ms = 1, .wall_ms = -2, .steady_ms = 3, .boot_id = "b"}; }

LogRecord ALogRecord() {
  return {.kind = LogRecord::Kind::kLearn,
          .time_ms = 77,
          .user = std::string("a\0b", 3),
          .event = std::numeric_limits<std::uint64_t>::max(),
          .reward = -1.25,
          .decision = ADecision()};
}

Person APerson() {
  return {.name = "ann",
          .observations = 99,
          .first_ms = 5,
          .moves = {{.time_ms = 6, .from = 0, .to = 3}, {.time_ms = 7, .from = 3, .to = kNoModel}},
          .columns = {{.column = 2, .count = 5, .sum = -1.5, .squares = 9},
                      {.column = 7, .count = 1, .sum = 1, .squares = 1}}};
}
// What is there of columns, which earlier versions did not keep.
constexpr std::size_t kBytesOfColumns = 8 + 2 * 24;

std::string Encode(const Person& person) {
  ByteWriter out;
  person.Save(out);
  return out.Take();
}

Status DecodePerson(std::string_view bytes) {
  ByteReader in(bytes);
  Person person;
  person.Load(in);
  in.ExpectEnd();
  return in.status();
}

CheckpointRecord ACheckpoint() {
  return {.spec = "codband:v=1",
          .sequence = 12345,
          .users = 7,
          .changes = 3,
          .recent = {{.user = "ann", .time_ms = 1, .from = kNoModel, .to = 2}},
          .shared = "all that is shared"};
}

Item AnItem() {
  return {.id = "i",
          .features = {0.1, 0.2, 0.3},
          .named = {{"genre=rock", 1}, {"price", 3.5}},
          .tags = {"loud", ""}};
}

Identity AnIdentity() { return {.dim = 25, .created_ms = 9, .version = "0.1.0"}; }

TEST(RecordsTest, PendingDecisionsComeBack) {
  const PendingDecision pending = APending();
  const PendingDecision back = PendingDecision::Decode(pending.Encode()).value();
  EXPECT_EQ(back.state, pending.state);
  EXPECT_EQ(back.time_ms, pending.time_ms);
  EXPECT_EQ(back.deadline_ms, pending.deadline_ms);
  EXPECT_EQ(back.learn, pending.learn);
  EXPECT_EQ(back.user, pending.user);
  ExpectEqual(back.decision, pending.decision);
  EXPECT_EQ(back.context, pending.context);
  ASSERT_EQ(back.candidates.size(), 2U);
  EXPECT_EQ(back.candidates[1].id, "y");
  EXPECT_EQ(back.candidates[1].probability, 0.75);
  EXPECT_EQ(back.candidates[1].features, (std::vector<float>{4, 5, 6}));
}

TEST(RecordsTest, DecisionsWithAnOutcomeKeepOnlyStateAndDeadline) {
  for (const auto state : {PendingDecision::State::kRewarded, PendingDecision::State::kExpired}) {
    PendingDecision pending = APending();
    pending.state = state;
    const std::string bytes = pending.Encode();
    EXPECT_EQ(bytes.find("ann"), std::string::npos);
    const PendingDecision back = PendingDecision::Decode(bytes).value();
    EXPECT_EQ(back.state, state);
    EXPECT_EQ(back.deadline_ms, pending.deadline_ms);
  }
}

TEST(RecordsTest, LogEntriesComeBack) {
  const LogRecord learn = ALogRecord();
  const LogRecord back = LogRecord::Decode(learn.Encode()).value();
  EXPECT_EQ(back.kind, learn.kind);
  EXPECT_EQ(back.time_ms, learn.time_ms);
  EXPECT_EQ(back.user, learn.user);
  EXPECT_EQ(back.event, learn.event);
  EXPECT_EQ(back.reward, learn.reward);
  ExpectEqual(back.decision, learn.decision);
  const LogRecord forget{
      .kind = LogRecord::Kind::kForget, .time_ms = -1, .user = "ann", .decision = {}};
  const LogRecord forgotten = LogRecord::Decode(forget.Encode()).value();
  EXPECT_EQ(forgotten.kind, forget.kind);
  EXPECT_EQ(forgotten.time_ms, -1);
  EXPECT_EQ(forgotten.user, "ann");
  EXPECT_EQ(forgotten.user_id(), HashUser("ann"));  // as entries of before have it
  LogRecord with_columns = forget;
  with_columns.decision.user = 17;
  with_columns.forgotten_columns = {2, 9};
  const LogRecord again = LogRecord::Decode(with_columns.Encode()).value();
  EXPECT_EQ(again.user_id(), 17U);
  EXPECT_EQ(again.forgotten_columns, with_columns.forgotten_columns);
}

TEST(RecordsTest, ItemsOfDecisionsComeBackAndMayBeMissing) {
  LogRecord learn = ALogRecord();
  learn.decision.item = 77;
  EXPECT_EQ(LogRecord::Decode(learn.Encode()).value().decision.item, 77U);
  learn.decision.item = kNoItem;  // as earlier versions wrote it
  EXPECT_EQ(LogRecord::Decode(learn.Encode()).value().decision.item, kNoItem);
  LogRecord forget{.kind = LogRecord::Kind::kForgetItem, .time_ms = 3, .user = {}};
  forget.decision.item = 78;
  const LogRecord back = LogRecord::Decode(forget.Encode()).value();
  EXPECT_EQ(back.kind, LogRecord::Kind::kForgetItem);
  EXPECT_EQ(back.decision.item, 78U);
  PendingDecision pending = APending();
  pending.decision.item = 79;
  EXPECT_EQ(PendingDecision::Decode(pending.Encode()).value().decision.item, 79U);
}

TEST(RecordsTest, PeopleComeBack) {
  const std::string bytes = Encode(APerson());
  ByteReader in(bytes);
  Person back;
  back.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(Encode(back), bytes);
  EXPECT_EQ(back.name, "ann");
  EXPECT_EQ(back.observations, 99U);
  EXPECT_EQ(back.since_ms(), 7);
  EXPECT_EQ(back.moves.at(1).to, kNoModel);
  EXPECT_EQ(back.columns, APerson().columns);
}

// Programs before wrote the number of all changes, remembered or not, where now nothing is read.
TEST(RecordsTest, PeopleOfEarlierProgramsComeBack) {
  std::string bytes = Encode(APerson());
  const std::size_t position = 8 + 3 + 8 + 8;  // after name, observations and first_ms
  ASSERT_EQ(bytes[position], 2);
  bytes[position] = 70;
  EXPECT_TRUE(DecodePerson(bytes).ok());
  ByteReader in(bytes);
  Person back;
  back.Load(in);
  EXPECT_EQ(Encode(back), Encode(APerson()));
}

TEST(RecordsTest, PeopleRememberTheNewestChanges) {
  Person person;
  person.first_ms = -1;
  EXPECT_EQ(person.since_ms(), -1);
  for (int i = 0; i < 100; ++i) person.AddMove({.time_ms = i, .from = 0, .to = 1});
  ASSERT_EQ(person.moves.size(), Person::kMostChanges);
  EXPECT_EQ(person.moves.front().time_ms, 36);
  EXPECT_EQ(person.since_ms(), 99);
}

TEST(RecordsTest, CheckpointsComeBack) {
  const CheckpointRecord back = CheckpointRecord::Decode(ACheckpoint().Encode()).value();
  EXPECT_EQ(back.Encode(), ACheckpoint().Encode());
  EXPECT_EQ(back.spec, "codband:v=1");
  EXPECT_EQ(back.sequence, 12345U);
  EXPECT_EQ(back.recent.at(0).from, kNoModel);
  EXPECT_EQ(back.shared, "all that is shared");
}

TEST(RecordsTest, ItemsAndIdentitiesComeBack) {
  EXPECT_EQ(DecodeItem(EncodeItem(AnItem())).value(), AnItem());
  const Identity back = Identity::Decode(AnIdentity().Encode()).value();
  EXPECT_EQ(back.dim, 25U);
  EXPECT_EQ(back.created_ms, 9);
  EXPECT_EQ(back.version, "0.1.0");
  EXPECT_EQ(back.format(), 1U);
  EXPECT_EQ(back.name_secret, std::nullopt);
  Identity with_secret = AnIdentity();
  with_secret.dim = 0;
  with_secret.name_secret = SipKey{.low = 1, .high = 2};
  const Identity again = Identity::Decode(with_secret.Encode()).value();
  EXPECT_EQ(again.format(), 4U);
  EXPECT_EQ(again.name_secret, with_secret.name_secret);
}

// Every record, cut at every byte, and with a byte too many.
TEST(RecordsTest, QuarantineAndClockComeBack) {
  const QuarantinedEntry entry = DecodeQuarantined(EncodeQuarantined(AQuarantined())).value();
  EXPECT_EQ(entry.first, 5U);
  EXPECT_EQ(entry.last, 7U);
  EXPECT_EQ(entry.time_ms, 123);
  EXPECT_EQ(entry.reason, "x is inf");
  EXPECT_TRUE(entry.forgets);
  EXPECT_EQ(entry.user, "ann");
  EXPECT_EQ(entry.event, 99U);
  EXPECT_EQ(entry.reward, -2.5);
  QuarantinedEntry backwards = AQuarantined();
  backwards.last = 4;
  EXPECT_EQ(DecodeQuarantined(EncodeQuarantined(backwards)).status().code(),
            StatusCode::kCorruption);
  const ClockRecord clock = ClockRecord::Decode(AClock().Encode()).value();
  EXPECT_EQ(clock.wait_ms, 1);
  EXPECT_EQ(clock.wall_ms, -2);
  EXPECT_EQ(clock.steady_ms, 3);
  EXPECT_EQ(clock.boot_id, "b");
}

TEST(RecordsTest, PendingDecisionsOfEarlierVersionsAreRead) {
  const PendingDecision now = PendingDecision::Decode(APending().Encode()).value();
  EXPECT_EQ(now.made_ms, APending().made_ms);
  EXPECT_EQ(now.fingerprint, APending().fingerprint);
  EXPECT_EQ(now.action, "y");
  const PendingDecision before = PendingDecision::Decode(APendingOfBefore()).value();
  EXPECT_EQ(before.candidates.size(), 2U);
  EXPECT_EQ(before.made_ms, APending().time_ms);
  EXPECT_EQ(before.fingerprint, 0U);
  EXPECT_EQ(PendingDecision::WaitingUser(APendingOfBefore())->id, ADecision().user);
  EXPECT_EQ(PendingDecision::WaitingUser(APendingOfBefore())->name, "ann");
  EXPECT_FALSE(PendingDecision::WaitingUser("junk"));
}

PendingDecision ANamedPending() {
  PendingDecision pending = APending();
  pending.user_context = R"({"age":30})";
  pending.candidates[1].named = {{"genre=rock", 1}, {"price", 2.5}};
  return pending;
}

LogRecord AColumnsRecord() {
  using Kind = features::ColumnSpace::Kind;
  return {.kind = LogRecord::Kind::kColumns,
          .time_ms = 5,
          .first_column = 7,
          .additions = {{.kind = Kind::kName, .side = features::Side::kUser, .name = "age"},
                        {.kind = Kind::kCrossing, .item = 3, .other = 7},
                        {.kind = Kind::kShared, .count = 64},
                        {.kind = Kind::kSharer, .name = "tags=x"}}};
}

TEST(RecordsTest, NamesAndColumnsComeBack) {
  const PendingDecision pending = PendingDecision::Decode(ANamedPending().Encode()).value();
  EXPECT_EQ(pending.user_context, ANamedPending().user_context);
  EXPECT_EQ(pending.candidates[1].named, ANamedPending().candidates[1].named);
  EXPECT_TRUE(pending.candidates[0].named.empty());
  EXPECT_EQ(pending.decision.item, kNoItem);
  PendingDecision with_item = ANamedPending();
  with_item.decision.item = 80;
  const PendingDecision both = PendingDecision::Decode(with_item.Encode()).value();
  EXPECT_EQ(both.decision.item, 80U);
  EXPECT_EQ(both.user_context, with_item.user_context);
  EXPECT_EQ(both.candidates[1].named, with_item.candidates[1].named);
  const LogRecord columns = LogRecord::Decode(AColumnsRecord().Encode()).value();
  EXPECT_EQ(columns.kind, LogRecord::Kind::kColumns);
  EXPECT_EQ(columns.first_column, 7U);
  EXPECT_EQ(columns.additions, AColumnsRecord().additions);
}

// Stored sparsely where that is smaller; the same bits either way.
RC_GTEST_PROP(RecordsTest, SparseFeaturesComeBackBitForBit, (std::vector<double> dense)) {
  LogRecord record = ALogRecord();
  std::erase_if(dense, [](double x) { return !std::isfinite(x); });
  if (dense.size() > 64) dense.resize(64);
  record.decision.features.assign(1000, 0.0);
  for (std::size_t i = 0; i < dense.size(); ++i) record.decision.features[13 * i] = dense[i];
  record.decision.features[999] = -0.0;
  const std::string bytes = record.Encode();
  RC_ASSERT(bytes.size() < 1000 * sizeof(double));
  const LogRecord back = LogRecord::Decode(bytes).value();
  RC_ASSERT(back.decision.features == record.decision.features);
  RC_ASSERT(std::signbit(back.decision.features[999]));
}

TEST(RecordsTest, AnonymousDecisionsHaveTheirUserAllTheSame) {
  PendingDecision pending = APending();
  pending.user.clear();
  pending.decision.user = kNobody;
  EXPECT_EQ(PendingDecision::WaitingUser(pending.Encode())->id, kNobody);
}

TEST(RecordsTest, CutRecordsAreCorruption) {
  PendingDecision rewarded = APending();
  rewarded.state = PendingDecision::State::kRewarded;
  LogRecord forget = ALogRecord();
  forget.kind = LogRecord::Kind::kForget;
  forget.forgotten_columns = {3, 5};
  LogRecord forget_of_before = forget;
  forget_of_before.decision.user = 0;
  const auto code = [](const auto& result) { return result.status().code(); };
  using Decode = std::function<StatusCode(std::string_view)>;
  const Decode pending = [&](auto bytes) { return code(PendingDecision::Decode(bytes)); };
  const Decode log = [&](auto bytes) { return code(LogRecord::Decode(bytes)); };
  const std::vector<std::pair<std::string, Decode>> records = {
      {APending().Encode(), pending},
      {rewarded.Encode(), pending},
      {ALogRecord().Encode(), log},
      {forget.Encode(), log},
      {AColumnsRecord().Encode(), log},
      {Encode(APerson()), [](auto bytes) { return DecodePerson(bytes).code(); }},
      {ACheckpoint().Encode(), [&](auto bytes) { return code(CheckpointRecord::Decode(bytes)); }},
      {EncodeItem(AnItem()), [&](auto bytes) { return code(DecodeItem(bytes)); }},
      {AnIdentity().Encode(), [&](auto bytes) { return code(Identity::Decode(bytes)); }},
      {EncodeQuarantined(AQuarantined()),
       [&](auto bytes) { return code(DecodeQuarantined(bytes)); }},
      {AClock().Encode(), [&](auto bytes) { return code(ClockRecord::Decode(bytes)); }},
      {NumberKey(7), [&](auto bytes) { return code(ReadNumberKey(bytes)); }},
  };
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& [bytes, decode] = records[i];
    EXPECT_EQ(decode(bytes), StatusCode::kOk) << i;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      if (i == 0 && size == APendingOfBefore().size()) continue;
      // A person of a version without evidence and last rewards ends here.
      const std::size_t without_columns = bytes.size() - kBytesOfColumns;
      if (i == 5 && size == without_columns - 16 * APerson().moves.size() - 16) continue;
      // And one without what they have added to columns here.
      if (i == 5 && size == without_columns) continue;
      if (bytes == forget.Encode() && size == forget_of_before.Encode().size()) continue;
      EXPECT_EQ(decode(std::string_view(bytes).substr(0, size)), StatusCode::kCorruption)
          << "record " << i << " cut at " << size;
    }
    EXPECT_EQ(decode(bytes + '\0'), StatusCode::kCorruption) << i;
  }
}

TEST(RecordsTest, StrangeValuesAreCorruption) {
  std::string bytes = APending().Encode();
  bytes[0] = 5;
  EXPECT_EQ(PendingDecision::Decode(bytes).status().code(), StatusCode::kCorruption);
  bytes = ALogRecord().Encode();
  bytes[0] = 3;
  EXPECT_EQ(LogRecord::Decode(bytes).status().code(), StatusCode::kCorruption);
  LogRecord infinite = ALogRecord();
  infinite.reward = INFINITY;
  EXPECT_EQ(LogRecord::Decode(infinite.Encode()).status().code(), StatusCode::kCorruption);
  Identity identity = AnIdentity();
  identity.dim = kMaxFeatures + 1;
  EXPECT_EQ(Identity::Decode(identity.Encode()).status().code(), StatusCode::kCorruption);
  bytes = AnIdentity().Encode();
  bytes[0] = 2;  // a column for every name, and yet a number of features
  EXPECT_EQ(Identity::Decode(bytes).status().code(), StatusCode::kCorruption);
  bytes[0] = 3;  // it has a secret
  EXPECT_EQ(Identity::Decode(bytes).status().code(), StatusCode::kCorruption);
  bytes[0] = 5;
  EXPECT_EQ(Identity::Decode(bytes).status().message(),
            "data format is 5, this program reads 1 to 4 (before byte 4)");
}

RC_GTEST_PROP(RecordsTest, NumberKeysAreOrderedAsNumbers, (std::uint64_t a, std::uint64_t b)) {
  RC_ASSERT(ReadNumberKey(NumberKey(a)).value() == a);
  RC_ASSERT((NumberKey(a) < NumberKey(b)) == (a < b));
}

RC_GTEST_PROP(RecordsTest, DeadlinesAreOrderedByTime, ()) {
  const auto deadline = [] {
    return Deadline{.time_ms = *rc::gen::inRange<std::int64_t>(0, 1 << 20),
                    .number = *rc::gen::arbitrary<std::uint64_t>(),
                    .event_ids = *rc::gen::arbitrary<std::vector<std::string>>()};
  };
  const Deadline a = deadline();
  const Deadline b = deadline();
  const Deadline back = Deadline::Decode(a.Key(), a.Encode()).value();
  RC_ASSERT(back.time_ms == a.time_ms);
  RC_ASSERT(back.number == a.number);
  RC_ASSERT(back.event_ids == a.event_ids);
  if (a.time_ms < b.time_ms) RC_ASSERT(a.Key() < b.Key());
  RC_ASSERT(a.Key() < Deadline::KeyAfter(a.time_ms));
  if (b.time_ms > a.time_ms) RC_ASSERT(b.Key() >= Deadline::KeyAfter(a.time_ms));
}

TEST(RecordsTest, DamagedDeadlinesAreRefused) {
  const Deadline deadline{.time_ms = 5, .number = 1, .event_ids = {"one", "two"}};
  const std::string value = deadline.Encode();
  for (std::size_t cut = 0; cut < value.size(); ++cut) {
    EXPECT_FALSE(Deadline::Decode(deadline.Key(), value.substr(0, cut)).ok()) << cut;
  }
  EXPECT_FALSE(Deadline::Decode(deadline.Key().substr(0, 12), value).ok());
  EXPECT_FALSE(Deadline::Decode(deadline.Key(), value + "x").ok());
}

// Data directories are full of these numbers.
TEST(RecordsTest, HashesOfUsersStayTheSame) {
  EXPECT_EQ(HashUser(""), 0x2d06800538d394c2U);  // XXH3_64bits of nothing, by its specification
  EXPECT_NE(HashUser("ann"), HashUser("bob"));
  EXPECT_EQ(HashUser("ann"), HashUser("ann"));
}

// 0 is a user id like any other, not the absence of a user.
TEST(RecordsTest, ADecisionHasAUserUntilItHasAnOutcome) {
  PendingDecision pending = APending();
  pending.decision.user = 0;
  using State = PendingDecision::State;
  for (const auto state : {State::kWaiting, State::kDeferred, State::kRewarded, State::kExpired}) {
    pending.state = state;
    const PendingDecision back = PendingDecision::Decode(pending.Encode()).value();
    EXPECT_EQ(back.user_id().has_value(), back.waits());
    EXPECT_EQ(back.user_id().value_or(0), 0U);
    EXPECT_EQ(PendingDecision::Waits(pending.Encode()), back.waits());
  }
  EXPECT_FALSE(PendingDecision::Waits("\x90")) << "no state has this number";
  EXPECT_FALSE(PendingDecision::Waits(""));
}

}  // namespace
}  // namespace codband::engine
