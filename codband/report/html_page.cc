#include "codband/report/html_page.h"

#include <fmt/format.h>

#include "codband/base/text.h"

namespace codband::report {
namespace {

// The colours and the type of the dashboard (web/src/style.css).
constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--fg:#17212b;--muted:#56616e;--line:#dfe4ea;--shadow:#17212b38}
@media (prefers-color-scheme:dark){
:root{--bg:#10151b;--card:#16181d;--fg:#e7ecf1;--muted:#a3afbc;--line:#2b3643;--shadow:#000c}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);overflow-wrap:anywhere;-webkit-text-size-adjust:100%;
font:15px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1240px;margin:0 auto;padding:2rem 1.5rem 4rem}
h1{font-size:1.55rem;line-height:1.2;margin:0 0 1rem;letter-spacing:-.01em}
h2{font-size:1.2rem;line-height:1.3;margin:2.25rem 0 .75rem}
p{margin:0 0 1rem;max-width:48rem}
.lead{font-size:1.25rem;line-height:1.45;max-width:60rem}
figure{margin:1rem 0;background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1rem 1.1rem}
figure svg{display:block;width:100%;max-width:46rem;height:auto}
figure:has(>svg){max-width:43rem}
@media (min-width:75rem){
figure:has(>svg):has(+figure>svg),figure:has(>svg)+figure:has(>svg){display:inline-block;vertical-align:top;width:36.3rem;margin-right:.8rem}}
figcaption{color:var(--muted);font-size:.9rem;line-height:1.5;margin-top:.5rem;max-width:48rem}
.scroll{overflow-x:auto;background:linear-gradient(90deg,var(--card) 30%,transparent) 0 0/3rem 100% no-repeat local,
linear-gradient(270deg,var(--card) 30%,transparent) 100% 0/3rem 100% no-repeat local,
linear-gradient(90deg,var(--shadow),transparent) 0 0/.9rem 100% no-repeat scroll,
linear-gradient(270deg,var(--shadow),transparent) 100% 0/.9rem 100% no-repeat scroll;padding-bottom:.3rem}
.scroll:focus-visible{outline:2px solid #0072b2}
table{border-collapse:collapse;font-size:.9rem;line-height:1.4;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .8rem;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{padding-left:0;white-space:normal;min-width:9rem;max-width:18rem}
th{color:var(--muted);font-weight:600;border-bottom-width:2px}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 1rem;padding:.75rem 1rem;border-radius:8px;background:var(--card);border:1px solid var(--line);
font:.875rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
dl{display:grid;grid-template-columns:fit-content(40%) minmax(0,1fr);gap:.25rem 1.5rem;margin:0 0 1rem;font-size:.95rem}
dt{color:var(--muted)}
dd{margin:0;font-variant-numeric:tabular-nums}
@media (max-width:36rem){
main{padding:1.25rem .75rem 2.5rem}
figure{padding:.75rem}
.lead{font-size:1.1rem}}
)css";

std::string Caption(std::string_view text) {
  return text.empty() ? "" : "<figcaption>" + EscapeXml(text) + "</figcaption>\n";
}

}  // namespace

HtmlPage::HtmlPage(std::string_view title) : title_(EscapeXml(title)) {}

void HtmlPage::AddHeading(std::string_view text) { body_ += "<h2>" + EscapeXml(text) + "</h2>\n"; }

void HtmlPage::AddLead(std::string_view text) {
  body_ += "<p class=\"lead\">" + EscapeXml(text) + "</p>\n";
}

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
