#include "codband/policy/state_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "codband/base/file.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

std::unique_ptr<Policy> Trained(TestWorld& world, std::string_view spec, int steps) {
  auto policy = MakeOrDie(spec, world.context());
  for (int i = 0; i < steps; ++i) world.Step(*policy);
  return policy;
}

TEST(StateFileTest, EveryTruncationIsCorruptionWithWhatAndWhere) {
  TestWorld world(1);
  const std::string bytes = EncodeState(*Trained(world, "codband", 60));
  for (std::size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 97) {
    const auto result = DecodeState(std::string_view(bytes).substr(0, size), world.context());
    ASSERT_FALSE(result.ok()) << size;
    ASSERT_EQ(result.status().code(), StatusCode::kCorruption) << result.status().ToString();
    ASSERT_FALSE(result.status().message().empty());
  }
}

TEST(StateFileTest, EveryDamagedByteIsCorruption) {
  TestWorld world(1);
  const std::string bytes = EncodeState(*Trained(world, "linucb", 20));
  for (std::size_t place = 0; place < bytes.size(); place += place < 200 ? 1 : 31) {
    std::string damaged = bytes;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    const auto result = DecodeState(damaged, world.context());
    ASSERT_FALSE(result.ok()) << place;
    ASSERT_EQ(result.status().code(), StatusCode::kCorruption) << result.status().ToString();
  }
}

// Damage that a checksum would catch, seen by the decoders themselves: they must refuse or accept,
// never crash.
TEST(StateFileTest, DecodersSurviveDamageBehindTheChecksum) {
  for (const std::string& spec : RegisteredSpecs()) {
    if (spec == "random") continue;  // has no state
    TestWorld world(1);
    const auto policy = Trained(world, spec, 60);
    ByteWriter out;
    policy->SaveState(out);
    const std::string& bytes = out.bytes();
    int refused = 0;
    for (std::size_t place = 0; place < bytes.size(); place += 1 + place / 64) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string damaged = bytes;
        damaged[place] = static_cast<char>(damaged[place] ^ flip);
        ByteReader in(damaged);
        const auto loaded = MakeOrDie(spec, world.context());
        loaded->LoadState(in);
        refused += !in.ok();
        if (!in.ok()) continue;
        try {
          for (int i = 0; i < 3; ++i) world.Step(*loaded);
        } catch (const std::exception&) {
          // Numbers that no run could have produced may break an invariant: reported, no crash.
        }
      }
    }
    EXPECT_GT(refused, 0) << spec;
  }
}

TEST(StateFileTest, ContributionToAGroupThatDoesNotExistIsRefused) {
  TestWorld world(1);
  const auto policy = Trained(world, "uniform-linucb", 20);
  ByteWriter out;
  policy->SaveState(out);
  // Taking the group out leaves users who gave to it.
  ByteWriter damaged;
  damaged.U64(0);
  const std::size_t head = 2 * sizeof(std::uint64_t);  // the number of features
  const std::size_t group_bytes = linalg::GaussianPosterior::SavedBytes(TestWorld::kDim);
  const std::string bytes = out.bytes().substr(0, head) + damaged.bytes() +
                            out.bytes().substr(head + sizeof(std::uint64_t) + group_bytes);
  ByteReader in(bytes);
  MakeOrDie("uniform-linucb", world.context())->LoadState(in);
  EXPECT_EQ(in.status().code(), StatusCode::kCorruption);
}

TEST(StateFileTest, MessagesSayWhatIsWrong) {
  TestWorld world(1);
  const std::string bytes = EncodeState(*Trained(world, "linucb", 5));
  EXPECT_NE(DecodeState("hello world", {}).status().message().find("first 8 bytes"),
            std::string::npos);
  std::string future = bytes;
  future[8] = 10;
  EXPECT_NE(DecodeState(future, {}).status().message().find("format version 10"),
            std::string::npos);
  const auto larger = MakeOrDie("linucb", {.dim = 6});
  ByteWriter state;
  Trained(world, "linucb", 5)->SaveState(state);
  ByteReader in(state.bytes());
  larger->LoadState(in);
  EXPECT_NE(in.status().message().find("number of features is 5, expected 6 to 1024"),
            std::string::npos)
      << in.status().message();
}

TEST(StateFileTest, FileRoundTripKeepsEveryBit) {
  TestWorld world(2);
  const auto policy = Trained(world, "codband:paper", 100);
  const auto path = std::filesystem::path(testing::TempDir()) / "state_file_test.state";
  ASSERT_TRUE(WriteStateFile(*policy, path).ok());
  const auto restored = ReadStateFile(path, {});
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(EncodeState(*restored.value()), EncodeState(*policy));
  ASSERT_TRUE(WriteFileDurably(path, "codband\ntorn").ok());
  const auto torn = ReadStateFile(path, {});
  EXPECT_EQ(torn.status().code(), StatusCode::kCorruption);
  EXPECT_NE(torn.status().message().find(path.string()), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace codband
