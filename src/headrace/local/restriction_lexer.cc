#include "headrace/local/restriction_lexer.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "headrace/local/restriction.h"

namespace headrace::local {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsWordStart(c) || IsDigit(c); }

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  arrow::Result<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
      if (at_ == text_.size()) break;
      ARROW_ASSIGN_OR_RAISE(Token token, Next());
      tokens.push_back(std::move(token));
    }
    tokens.push_back({Token::Kind::kEnd, "", text_.size()});
    return tokens;
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  arrow::Result<Token> Next() {
    char c = text_[at_];
    if (c == '\'' || c == '"') return Quoted(at_, Token::Kind::kString, false);
    if (c == '`') return Quoted(at_, Token::Kind::kQuotedName, false);
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)) && !AfterName())) return Number();
    if (IsWordStart(c)) return Word();
    return Symbol();
  }

  // After a name a dot is a path's, even when a digit follows.
  bool AfterName() const { return at_ > 0 && (IsWord(text_[at_ - 1]) || text_[at_ - 1] == '`'); }

  arrow::Result<Token> Word() {
    size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (Peek() == '\'' || Peek() == '"') {
      std::string prefix;
      for (char c : word) prefix.push_back(static_cast<char>(c | 0x20));
      if (prefix == "r") return Quoted(begin, Token::Kind::kString, true);
      if (prefix == "b") return Quoted(begin, Token::Kind::kBytes, false);
      if (prefix == "rb" || prefix == "br") return Quoted(begin, Token::Kind::kBytes, true);
    }
    return Token{Token::Kind::kWord, std::move(word), begin};
  }

  arrow::Result<Token> Number() {
    size_t begin = at_;
    auto kind = Token::Kind::kInteger;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      at_ += 2;
      while (at_ < text_.size() && DigitValue(text_[at_]) < 16) ++at_;
      if (at_ == begin + 2) return RestrictionError(text_, begin, "Syntax error: Invalid hex integer literal");
    } else {
      while (IsDigit(Peek())) ++at_;
      if (Peek() == '.') {
        kind = Token::Kind::kFloat;
        ++at_;
        while (IsDigit(Peek())) ++at_;
      }
      if (Peek() == 'e' || Peek() == 'E') {
        size_t sign = (Peek(1) == '+' || Peek(1) == '-') ? 2 : 1;
        if (!IsDigit(Peek(sign))) return RestrictionError(text_, begin, "Syntax error: Invalid floating point literal");
        kind = Token::Kind::kFloat;
        at_ += sign;
        while (IsDigit(Peek())) ++at_;
      }
    }
    if (at_ < text_.size() && IsWord(text_[at_]))
      return RestrictionError(text_, at_, "Syntax error: Missing whitespace between literal and alias");
    return Token{kind, std::string(text_.substr(begin, at_ - begin)), begin};
  }

  // A literal or a name from its first quote on; `begin` is that of its prefix. A raw one keeps its backslashes.
  arrow::Result<Token> Quoted(size_t begin, Token::Kind kind, bool raw) {
    const char quote = Peek();
    const bool triple = quote != '`' && Peek(1) == quote && Peek(2) == quote;
    const std::string end(triple ? 3 : 1, quote);
    at_ += end.size();
    std::string value;
    while (text_.substr(at_, end.size()) != end) {
      if (at_ >= text_.size() || (!triple && (text_[at_] == '\n' || text_[at_] == '\r'))) {
        return RestrictionError(text_, begin,
                                quote == '`' ? "Syntax error: Unclosed identifier literal"
                                : triple     ? "Syntax error: Unclosed triple-quoted string literal"
                                             : "Syntax error: Unclosed string literal");
      }
      if (text_[at_] != '\\') {
        value.push_back(text_[at_++]);
      } else if (!raw) {
        ARROW_RETURN_NOT_OK(Escape(kind == Token::Kind::kBytes, &value));
      } else {
        // A backslash of a raw literal stays, and so does what follows it, be it the quote.
        value.append(text_.substr(at_, 2));
        at_ = std::min(at_ + 2, text_.size());
      }
    }
    at_ += end.size();
    if (kind == Token::Kind::kQuotedName && value.empty()) return RestrictionError(text_, begin, "Syntax error: Invalid empty identifier");
    return Token{kind, std::move(value), begin};
  }

  // The escape sequences of GoogleSQL's string literals.
  arrow::Status Escape(bool bytes, std::string* value) {
    size_t begin = at_;
    char c = Peek(1);
    constexpr std::string_view kFrom = "abfnrtv\\?\"'`";
    constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\?\"'`";
    if (auto simple = kFrom.find(c); c != '\0' && simple != std::string_view::npos) {
      value->push_back(kTo[simple]);
      at_ += 2;
      return arrow::Status::OK();
    }
    int digits = 0;
    uint32_t base = 16;
    size_t skip = 2;
    if (c == 'x' || c == 'X') digits = 2;
    if (c == 'u' && !bytes) digits = 4;
    if (c == 'U' && !bytes) digits = 8;
    if (c >= '0' && c <= '3') {
      digits = 3;
      base = 8;
      skip = 1;
    }
    uint64_t code = 0;
    for (int i = 0; i < digits; ++i) {
      int digit = DigitValue(Peek(skip + static_cast<size_t>(i)));
      if (digit >= static_cast<int>(base)) digits = 0;
      code = code * base + static_cast<uint64_t>(digit);
    }
    // A one-byte escape of a string literal names a code point, so the text stays UTF-8.
    if (digits == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return RestrictionError(text_, begin, "Syntax error: Illegal escape sequence");
    }
    if (bytes) {
      value->push_back(static_cast<char>(code));
    } else {
      AppendUtf8(static_cast<uint32_t>(code), value);
    }
    at_ += skip + static_cast<size_t>(digits);
    return arrow::Status::OK();
  }

  arrow::Result<Token> Symbol() {
    size_t begin = at_;
    constexpr std::string_view kTwo[] = {"!=", "<>", "<=", ">=", "||", "<<", ">>"};
    for (std::string_view symbol : kTwo) {
      if (text_.substr(at_, 2) == symbol) {
        at_ += 2;
        return Token{Token::Kind::kSymbol, std::string(symbol), begin};
      }
    }
    if (std::string_view("()=<>,.-+*/[]|&^~").find(text_[at_]) == std::string_view::npos) {
      auto byte = static_cast<unsigned char>(text_[at_]);
      std::string shown = byte >= 0x20 && byte < 0x7F ? std::string(1, text_[at_]) : fmt::format("\\x{:02x}", byte);
      return RestrictionError(text_, begin, fmt::format("Syntax error: Illegal input character \"{}\"", shown));
    }
    ++at_;
    return Token{Token::Kind::kSymbol, std::string(text_.substr(begin, 1)), begin};
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string PositionText(std::string_view text, size_t offset) {
  size_t line = 1;
  size_t start = 0;
  offset = std::min(offset, text.size());
  for (size_t i = 0; i < offset; ++i) {
    if (text[i] != '\n') continue;
    ++line;
    start = i + 1;
  }
  return fmt::format("[{}:{}]", line, offset - start + 1);
}

arrow::Status RestrictionError(std::string_view text, size_t offset, std::string_view message) {
  return MakeError({.code = Code::kInvalidArgument, .resource = "row_restriction", .reason = "INVALID_RESTRICTION"},
                   fmt::format("request failed: row restriction is invalid: {} at {}", message, PositionText(text, offset)));
}

arrow::Result<std::vector<Token>> LexRestriction(std::string_view text) { return Lexer(text).Run(); }

}  // namespace headrace::local
