// Any bytes in the table of items are refused or an item; one that is sound can be ranked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "codband/engine/catalogue.h"
#include "codband/engine/records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace codband;
  constexpr std::size_t kDim = 2;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto item = engine::DecodeItem(bytes);
  if (!item.ok()) return 0;
  if (engine::EncodeItem(item.value()) != bytes) std::abort();
  if (!engine::CheckItem(item.value(), kDim, kLargestNumber).ok()) return 0;
  engine::Catalogue catalogue(kDim);
  catalogue.Put(std::vector{std::make_shared<const engine::Item>(item.value())});
  if (catalogue.Find(item.value().id) == nullptr) std::abort();
  std::vector<double> features(kDim);
  features::HashFeatures(item.value().named, features);
  return 0;
}
