#include "codband/base/bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace codband {
namespace {

TEST(BytesTest, RoundTripIsExact) {
  ByteWriter out;
  out.U8(200);
  out.U32(0xdeadbeef);
  out.U64(0x0123456789abcdef);
  out.Double(-0.0);
  out.String("σ and a zero");
  const std::vector<double> values = {1.0 / 3, std::numeric_limits<double>::denorm_min(), -1e308};
  out.Doubles(values);

  ByteReader in(out.bytes());
  EXPECT_EQ(in.U8("a"), 200);
  EXPECT_EQ(in.U32("b"), 0xdeadbeef);
  EXPECT_EQ(in.U64("c"), 0x0123456789abcdefU);
  EXPECT_TRUE(std::signbit(in.Double("d")));
  EXPECT_EQ(in.String("e"), "σ and a zero");
  std::vector<double> read(3);
  in.Doubles("f", read);
  EXPECT_EQ(read, values);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok()) << in.status().ToString();
}

TEST(BytesTest, FloatRoundTripIsExactInFourBytesEach) {
  const std::vector<float> values = {1.0F / 3, -0.0F, std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::lowest()};
  ByteWriter out;
  out.Floats(values);
  EXPECT_EQ(out.bytes().size(), 16U);
  ByteReader in(out.bytes());
  std::vector<float> read(4);
  in.Floats("sums", read);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(read, values);
  EXPECT_TRUE(std::signbit(read[1]));
}

TEST(BytesTest, TruncatedOrNonFiniteFloatsAreRefused) {
  const std::vector<float> values = {1, std::numeric_limits<float>::infinity()};
  ByteWriter out;
  out.Floats(values);
  std::vector<float> read(2);
  ByteReader infinite(out.bytes());
  infinite.Floats("sums", read);
  EXPECT_EQ(infinite.status().message(), "sums is inf, expected a finite number (before byte 8)");
  EXPECT_EQ(read, (std::vector<float>{1, 0}));
  ByteReader cut(std::string_view(out.bytes()).substr(0, 3));
  cut.Floats("sums", {read.data(), 1});
  EXPECT_EQ(cut.status().message(), "sums needs 4 bytes, 3 are left (before byte 0)");
}

TEST(BytesTest, EmptySpansTakeNoBytes) {
  ByteWriter out;
  out.Doubles({});
  EXPECT_TRUE(out.bytes().empty());
  ByteReader in(out.bytes());
  in.Doubles("nothing", {});
  in.ExpectEnd();
  EXPECT_TRUE(in.ok());
}

TEST(BytesTest, LayoutIsLittleEndian) {
  ByteWriter out;
  out.U32(0x04030201);
  EXPECT_EQ(out.bytes(), "\x01\x02\x03\x04");
}

TEST(BytesTest, TruncationNamesTheFieldAndIsSticky) {
  ByteReader in("\x01\x02\x03");
  EXPECT_EQ(in.U64("size"), 0U);
  EXPECT_EQ(in.status().code(), StatusCode::kCorruption);
  EXPECT_EQ(in.status().message(), "size needs 8 bytes, 3 are left (before byte 0)");
  EXPECT_EQ(in.U8("next"), 0U);
  EXPECT_EQ(in.position(), 0U);
  EXPECT_EQ(in.status().message(), "size needs 8 bytes, 3 are left (before byte 0)");
}

TEST(BytesTest, CountLargerThanTheDataIsRefused) {
  ByteWriter out;
  out.U64(1ULL << 60);
  ByteReader in(out.bytes());
  EXPECT_EQ(in.Count("number of users", 8), 0U);
  EXPECT_EQ(in.status().code(), StatusCode::kCorruption);
}

TEST(BytesTest, NotANumberIsRefused) {
  ByteWriter out;
  out.Double(std::numeric_limits<double>::quiet_NaN());
  ByteReader in(out.bytes());
  EXPECT_EQ(in.Double("noise"), 0);
  EXPECT_NE(in.status().message().find("noise is nan"), std::string::npos);
}

TEST(BytesTest, TrailingBytesAreRefused) {
  ByteReader in("x");
  in.ExpectEnd();
  EXPECT_FALSE(in.ok());
}

TEST(BytesTest, Crc32IsThePublishedCheckValue) { EXPECT_EQ(Crc32("123456789"), 0xcbf43926U); }

}  // namespace
}  // namespace codband
