#include "codband/report/html_page.h"

#include <fmt/format.h>

#include "codband/base/text.h"

namespace codband::report {
namespace {

constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1c1f24;--muted:#59626e;--line:#dadee4;--code:#f3f5f7}
@media (prefers-color-scheme:dark){
:root{--bg:#16181d;--fg:#e4e7eb;--muted:#9aa4b0;--line:#363b44;--code:#20242b}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);overflow-wrap:anywhere;-webkit-text-size-adjust:100%;
font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 1.25rem;letter-spacing:-.01em}
h2{font-size:1.3rem;line-height:1.3;margin:2.75rem 0 .75rem;padding-top:1.25rem;border-top:1px solid var(--line)}
p{margin:0 0 1rem;max-width:44rem}
figure{margin:1.5rem 0}
figure svg{display:block;width:100%;max-width:46rem;height:auto}
figcaption{color:var(--muted);font-size:.9rem;line-height:1.5;margin-top:.5rem;max-width:44rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;line-height:1.4;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .8rem;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{padding-left:0}
th{color:var(--muted);font-weight:600;border-bottom-width:2px}
pre{overflow-x:auto;margin:0 0 1rem;padding:.75rem 1rem;border-radius:6px;background:var(--code);
font:.875rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
dl{display:grid;grid-template-columns:fit-content(40%) minmax(0,1fr);gap:.25rem 1.5rem;margin:0 0 1rem;font-size:.95rem}
dt{color:var(--muted)}
dd{margin:0;font-variant-numeric:tabular-nums}
@media (max-width:36rem){
main{padding:1.25rem .75rem 2.5rem}
h1{font-size:1.5rem}
h2{font-size:1.2rem;margin-top:2rem}}
)css";

std::string Caption(std::string_view text) {
  return text.empty() ? "" : "<figcaption>" + EscapeXml(text) + "</figcaption>\n";
}

}  // namespace

HtmlPage::HtmlPage(std::string_view title) : title_(EscapeXml(title)) {}

void HtmlPage::AddHeading(std::string_view text) { body_ += "<h2>" + EscapeXml(text) + "</h2>\n"; }

void HtmlPage::AddParagraph(std::string_view text) { body_ += "<p>" + EscapeXml(text) + "</p>\n"; }

void HtmlPage::AddTable(const ReportTable& table, std::string_view caption) {
  // Focusable, so that it can be scrolled with the keyboard.
  body_ += "<figure>\n<div class=\"scroll\" tabindex=\"0\">\n" + table.ToHtml() + "</div>\n" +
           Caption(caption) + "</figure>\n";
}

void HtmlPage::AddFigure(std::string_view svg, std::string_view caption) {
  body_ += "<figure>\n";
  body_ += svg;
  body_ += '\n' + Caption(caption) + "</figure>\n";
}

void HtmlPage::AddCommand(std::string_view command) {
  body_ += "<pre tabindex=\"0\"><code>" + EscapeXml(command) + "</code></pre>\n";
}

void HtmlPage::AddKeyValues(const std::vector<std::pair<std::string, std::string>>& items) {
  if (items.empty()) return;
  body_ += "<dl>\n";
  for (const auto& [key, value] : items) {
    body_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", EscapeXml(key), EscapeXml(value));
  }
  body_ += "</dl>\n";
}

std::string HtmlPage::ToHtml() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n{2}</main>\n"
      "</body>\n</html>\n",
      title_, kPageStyle, body_);
}

}  // namespace codband::report
