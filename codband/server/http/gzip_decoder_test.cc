// Bodies of gzip: the decoder, and requests that use it.
#include "codband/server/http/gzip_decoder.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(GzipDecoderTest, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919 % 1000) + ",";
  const std::string packed = Gzip(text.substr(0, 9000)) + Gzip("") + Gzip(text.substr(9000));
  for (const std::size_t in : {1UL, 7UL, packed.size()}) {
    for (const std::size_t most : {1UL, 100UL, 1'000'000UL}) {
      GzipDecoder decoder;
      std::string out;
      for (std::size_t at = 0; at < packed.size(); at += in) {
        std::string_view piece = std::string_view(packed).substr(at, in);
        while (true) {
          const std::size_t before = out.size();
          ASSERT_TRUE(decoder.Decode(piece, out, most).ok());
          ASSERT_LE(out.size(), before + most);
          if (out.size() < before + most) break;
        }
        ASSERT_TRUE(piece.empty());
      }
      EXPECT_EQ(out, text) << in << " " << most;
      EXPECT_TRUE(decoder.Finish().ok());
    }
  }
}

TEST(GzipDecoderTest, RefusesWhatIsNotGzip) {
  const std::string packed = Gzip("some text that is long enough to be cut");
  const auto decode = [](std::string_view input) {
    GzipDecoder decoder;
    std::string out;
    const Status status = decoder.Decode(input, out, 1000);
    return status.ok() ? decoder.Finish() : status;
  };
  EXPECT_TRUE(decode(packed).ok());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_EQ(decode(packed.substr(0, size)).code(), StatusCode::kInvalidArgument) << size;
  }
  EXPECT_FALSE(decode("{}").ok());
  EXPECT_FALSE(decode(packed + "{}").ok());
  std::string flipped = packed;
  flipped[flipped.size() - 6] ^= 1;  // the check sum
  EXPECT_EQ(decode(flipped).message(), "body: is not valid gzip");
}

class GzipRequestTest : public ServerFixture {
 protected:
  TestReply Send(std::string_view target, std::string_view body, std::string_view coding = "gzip") {
    return Request("POST", target, body, "Content-Encoding: " + std::string(coding) + "\r\n");
  }
};

TEST_F(GzipRequestTest, BodiesAreDecodedWithinTheLimit) {
  Start({.max_body_bytes = 10'000});
  const std::string body = R"({"userId":"u"})";
  EXPECT_EQ(Send("/v1/rank", Gzip(body)).status, 200);
  EXPECT_EQ(Send("/v1/rank", Gzip(body), "GZIP").status, 200);
  EXPECT_EQ(Send("/v1/rank", body, "identity").status, 200);
  EXPECT_EQ(engine_.last_request().user, "u");
  EXPECT_EQ(Send("/v1/rank", Gzip(body + std::string(10'000 - body.size(), ' '))).status, 200);
  EXPECT_EQ(engine_.calls(), 4U);
  const TestReply large = Send("/v1/rank", Gzip(body + std::string(10'001 - body.size(), ' ')));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.Error("field"), "body");
  EXPECT_EQ(Send("/v1/rank", Gzip(std::string(50'000'000, ' ')).substr(0, 10'000)).status, 413);
  EXPECT_EQ(Send("/v1/rank", body).Error("message"), "is not valid gzip");
  EXPECT_EQ(Send("/v1/rank", Gzip(body).substr(0, 20)).Error("message"),
            "ends before its gzip does");
  for (const char* coding : {"deflate", "br", "gzip, gzip", ""}) {
    const TestReply other = Send("/v1/rank", Gzip(body), coding);
    EXPECT_EQ(other.status, 415) << coding;
    EXPECT_EQ(other.Error("field"), "Content-Encoding");
    EXPECT_TRUE(other.Has("Accept-Encoding: gzip\r\n"));
  }
  EXPECT_EQ(engine_.calls(), 4U);
}

TEST_F(GzipRequestTest, TheConnectionIsKeptAfterABadBody) {
  Start();
  TestClient client = Connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.Request("POST", "/v1/rank", "{}", "Content-Encoding: gzip\r\n").status, 400);
    EXPECT_EQ(
        client.Request("POST", "/v1/rank", Gzip(R"({"userId":"u"})"), "Content-Encoding: gzip\r\n")
            .status,
        200);
  }
}

TEST_F(GzipRequestTest, ImportsAreDecodedWhileTheyArrive) {
  Start({.max_stream_bytes = 4'000'000});
  std::string lines;
  for (int i = 0; i < 60'000; ++i) {
    lines += R"({"id":"item-)" + std::to_string(i) + R"(","features":[1,2,3,4]})" + "\n";
  }
  ASSERT_LT(lines.size(), 4'000'000U);
  const TestReply reply = Send("/v1/items", Gzip(lines));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.Json()["accepted"], 60'000);
  EXPECT_EQ(engine_.items(), 60'000U);
  // A bomb: blank lines, which cost the sender next to nothing.
  EXPECT_EQ(Send("/v1/items", Gzip(std::string(4'000'001, '\n'))).status, 413);
  EXPECT_EQ(Send("/v1/items", Gzip(lines).substr(0, 2000)).status, 400);
  EXPECT_EQ(Send("/v1/items", lines).Error("message"), "is not valid gzip");
  EXPECT_EQ(Request("GET", "/v1/health/live").status, 200);
}

}  // namespace
}  // namespace codband::server
