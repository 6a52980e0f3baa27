#include "codband/server/page.h"
namespace codband {
std::string RenderPage(const PageFacts&) { return "<!DOCTYPE html>"; }
}  // namespace codband
