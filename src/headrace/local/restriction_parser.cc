#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "headrace/local/restriction.h"
#include "headrace/local/restriction_lexer.h"

namespace headrace::local {
namespace {

using Node = std::unique_ptr<SyntaxNode>;
using Kind = SyntaxNode::Kind;
using Literal = SyntaxNode::Literal;

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return upper;
}

// GoogleSQL's reserved keywords: no column's name unless in backquotes.
constexpr std::array kReserved = {
    "ALL",       "AND",       "ANY",      "ARRAY",       "AS",      "ASC",       "AT",      "BETWEEN", "BY",        "CASE",  "CAST",
    "COLLATE",   "CREATE",    "CROSS",    "CUBE",        "CURRENT", "DEFAULT",   "DEFINE",  "DESC",    "DISTINCT",  "ELSE",  "END",
    "ENUM",      "ESCAPE",    "EXCEPT",   "EXCLUDE",     "EXISTS",  "EXTRACT",   "FALSE",   "FETCH",   "FOLLOWING", "FOR",   "FROM",
    "FULL",      "GROUP",     "GROUPING", "GROUPS",      "HASH",    "HAVING",    "IF",      "IGNORE",  "IN",        "INNER", "INTERSECT",
    "INTERVAL",  "INTO",      "IS",       "JOIN",        "LATERAL", "LEFT",      "LIKE",    "LIMIT",   "LOOKUP",    "MERGE", "NATURAL",
    "NEW",       "NO",        "NOT",      "NULL",        "NULLS",   "OF",        "ON",      "OR",      "ORDER",     "OUTER", "OVER",
    "PARTITION", "PRECEDING", "PROTO",    "QUALIFY",     "RANGE",   "RECURSIVE", "RESPECT", "RIGHT",   "ROLLUP",    "ROWS",  "SELECT",
    "SET",       "SOME",      "STRUCT",   "TABLESAMPLE", "THEN",    "TO",        "TREAT",   "TRUE",    "UNBOUNDED", "UNION", "UNNEST",
    "USING",     "WHEN",      "WHERE",    "WINDOW",      "WITH",    "WITHIN"};

// Keywords that begin or continue SQL which is valid for the real service and not taken here.
constexpr std::array kNotTaken = {"CASE", "INTERVAL", "EXISTS", "UNNEST", "ARRAY", "STRUCT", "COLLATE", "RANGE", "SAFE_CAST", "EXTRACT"};

template <size_t N>
bool Among(const std::array<const char*, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<Literal> TypedLiteral(std::string_view word) {
  if (word == "DATE") return Literal::kDate;
  if (word == "TIME") return Literal::kTime;
  if (word == "DATETIME") return Literal::kDatetime;
  if (word == "TIMESTAMP") return Literal::kTimestamp;
  if (word == "NUMERIC" || word == "DECIMAL") return Literal::kNumeric;
  if (word == "BIGNUMERIC" || word == "BIGDECIMAL") return Literal::kBigNumeric;
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens) : text_(text), tokens_(std::move(tokens)) {}

  arrow::Result<Node> Run() {
    ARROW_ASSIGN_OR_RAISE(Node root, Or());
    if (Peek().kind != Token::Kind::kEnd) return Unexpected("end of input");
    return root;
  }

 private:
  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool IsWord(std::string_view word, size_t ahead = 0) const {
    return Peek(ahead).kind == Token::Kind::kWord && Upper(Peek(ahead).text) == word;
  }
  bool IsSymbol(std::string_view symbol, size_t ahead = 0) const {
    return Peek(ahead).kind == Token::Kind::kSymbol && Peek(ahead).text == symbol;
  }
  bool Take(bool matches) {
    if (matches) ++at_;
    return matches;
  }

  arrow::Status NotTaken(const Token& token, std::string_view what) const {
    return Unsupported("row_restriction", fmt::format("The local service does not take {} in a row restriction, at {}.", what,
                                                      PositionText(text_, token.offset)));
  }

  // What stands here cannot: other SQL is refused by name, the rest is a syntax error.
  arrow::Status Unexpected(std::string_view expected) const {
    const Token& token = Peek();
    if (token.kind == Token::Kind::kWord) {
      std::string word = Upper(token.text);
      if (Among(kNotTaken, word)) return NotTaken(token, word);
    }
    constexpr std::array kOperators = {"|", "&", "^", "~", "<<", ">>"};
    if (token.kind == Token::Kind::kSymbol && Among(kOperators, token.text)) {
      return NotTaken(token, fmt::format("the operator {}", token.text));
    }
    std::string got;
    switch (token.kind) {
      case Token::Kind::kEnd:
        got = "end of input";
        break;
      case Token::Kind::kString:
        got = "string literal";
        break;
      case Token::Kind::kBytes:
        got = "bytes literal";
        break;
      case Token::Kind::kInteger:
      case Token::Kind::kFloat:
        got = fmt::format("number \"{}\"", token.text);
        break;
      case Token::Kind::kWord:
        got = Among(kReserved, Upper(token.text)) ? fmt::format("keyword {}", Upper(token.text))
                                                  : fmt::format("identifier \"{}\"", token.text);
        break;
      default:
        got = fmt::format("\"{}\"", token.text);
    }
    return RestrictionError(text_, token.offset, fmt::format("Syntax error: Expected {} but got {}", expected, got));
  }

  static Node Make(Kind kind, size_t offset) {
    auto node = std::make_unique<SyntaxNode>();
    node->kind = kind;
    node->offset = offset;
    return node;
  }
  static Node Negate(Node child, bool negate) {
    if (!negate) return child;
    Node node = Make(Kind::kNot, child->offset);
    node->children.push_back(std::move(child));
    return node;
  }

  // Chains of AND and OR become one node with many children, so that a long chain is not a deep tree.
  arrow::Result<Node> Or() { return Chain("OR", Kind::kOr, &Parser::And); }
  arrow::Result<Node> And() { return Chain("AND", Kind::kAnd, &Parser::Not); }
  arrow::Result<Node> Chain(std::string_view word, Kind kind, arrow::Result<Node> (Parser::*next)()) {
    ARROW_ASSIGN_OR_RAISE(Node first, (this->*next)());
    if (!IsWord(word)) return first;
    Node node = Make(kind, first->offset);
    node->children.push_back(std::move(first));
    while (Take(IsWord(word))) {
      ARROW_ASSIGN_OR_RAISE(Node child, (this->*next)());
      node->children.push_back(std::move(child));
    }
    return node;
  }

  arrow::Result<Node> Not() {
    size_t offset = Peek().offset;
    bool negate = false;
    bool any = false;
    while (Take(IsWord("NOT"))) {
      negate = !negate;
      any = true;
    }
    ARROW_ASSIGN_OR_RAISE(Node node, Predicate());
    if (any && !negate) node = Negate(std::move(node), true);  // NOT NOT x still demands that x is a BOOL
    node = Negate(std::move(node), any);
    node->offset = offset;
    return node;
  }

  static Node Pair(Kind kind, size_t offset, Node left, Node right) {
    Node node = Make(kind, offset);
    node->children.push_back(std::move(left));
    node->children.push_back(std::move(right));
    return node;
  }

  arrow::Result<Node> Predicate() {
    ARROW_ASSIGN_OR_RAISE(Node operand, Sum());
    const Token& token = Peek();
    if (token.kind == Token::Kind::kSymbol) {
      constexpr std::array kComparisons = {"=", "!=", "<>", "<", "<=", ">", ">="};
      if (!Among(kComparisons, token.text)) return operand;
      ++at_;
      ARROW_ASSIGN_OR_RAISE(Node right, Sum());
      Node node = Pair(Kind::kComparison, token.offset, std::move(operand), std::move(right));
      node->text = token.text == "<>" ? "!=" : token.text;
      return node;
    }
    if (Take(IsWord("IS"))) return Is(std::move(operand));
    bool negate = IsWord("NOT") && (IsWord("IN", 1) || IsWord("BETWEEN", 1) || IsWord("LIKE", 1));
    if (negate) ++at_;
    if (IsWord("IN")) {
      ARROW_ASSIGN_OR_RAISE(Node node, In(std::move(operand)));
      return Negate(std::move(node), negate);
    }
    if (IsWord("LIKE")) {
      size_t offset = Peek().offset;
      ++at_;
      ARROW_ASSIGN_OR_RAISE(Node pattern, Sum());
      return Negate(Pair(Kind::kLike, offset, std::move(operand), std::move(pattern)), negate);
    }
    if (IsWord("BETWEEN")) {
      size_t offset = Peek().offset;
      ++at_;
      ARROW_ASSIGN_OR_RAISE(Node low, Sum());
      if (!Take(IsWord("AND"))) return Unexpected("keyword AND");
      ARROW_ASSIGN_OR_RAISE(Node high, Sum());
      Node node = Pair(Kind::kBetween, offset, std::move(operand), std::move(low));
      node->children.push_back(std::move(high));
      return Negate(std::move(node), negate);
    }
    return operand;
  }

  arrow::Result<Node> Sum() { return Arithmetic({"+", "-"}, &Parser::Product); }
  arrow::Result<Node> Product() { return Arithmetic({"*", "/", "||"}, &Parser::Signed); }

  // Operators of one rank, from the left. Each makes the tree one deeper, so they count as nesting does.
  arrow::Result<Node> Arithmetic(std::initializer_list<std::string_view> operators, arrow::Result<Node> (Parser::*next)()) {
    ARROW_ASSIGN_OR_RAISE(Node left, (this->*next)());
    int length = 0;
    while (Peek().kind == Token::Kind::kSymbol && std::find(operators.begin(), operators.end(), Peek().text) != operators.end()) {
      const Token& token = Peek();
      if (++length + depth_ > kMaxRestrictionDepth) return TooDeep(token);
      ++at_;
      ARROW_ASSIGN_OR_RAISE(Node right, (this->*next)());
      left = Pair(Kind::kArithmetic, token.offset, std::move(left), std::move(right));
      left->text = token.text;
    }
    return left;
  }

  arrow::Result<Node> Signed() {
    const Token& first = Peek();
    bool negative = false;
    while (IsSymbol("-") || IsSymbol("+")) negative = Take(IsSymbol("-")) ? !negative : (++at_, negative);
    if (IsSymbol("~")) return Unexpected("an expression");
    bool number = Peek().kind == Token::Kind::kInteger || Peek().kind == Token::Kind::kFloat;
    if (number) {  // its sign is part of it: -9223372036854775808 is an INT64
      ARROW_ASSIGN_OR_RAISE(Node node, Constant(negative ? "-" : ""));
      node->offset = first.offset;
      return node;
    }
    ARROW_ASSIGN_OR_RAISE(Node operand, Operand());
    if (first.kind != Token::Kind::kSymbol || (first.text != "-" && first.text != "+")) return operand;
    Node node = Make(Kind::kNegate, first.offset);
    node->text = negative ? "-" : "+";
    node->children.push_back(std::move(operand));
    return node;
  }

  arrow::Status TooDeep(const Token& token) const { return RestrictionError(text_, token.offset, "Expressions are nested too deeply"); }

  arrow::Result<Node> Is(Node operand) {
    bool negate = Take(IsWord("NOT"));
    Kind kind = Kind::kIsNull;
    if (IsWord("TRUE")) {
      kind = Kind::kIsTrue;
    } else if (IsWord("FALSE")) {
      kind = Kind::kIsFalse;
    } else if (IsWord("DISTINCT") && IsWord("FROM", 1)) {
      size_t offset = Peek().offset;
      at_ += 2;
      ARROW_ASSIGN_OR_RAISE(Node right, Sum());
      return Negate(Pair(Kind::kDistinct, offset, std::move(operand), std::move(right)), negate);
    } else if (!IsWord("NULL")) {
      return Unexpected("keyword NULL, TRUE or FALSE");
    }
    Node node = Make(kind, operand->offset);
    ++at_;
    node->children.push_back(std::move(operand));
    return Negate(std::move(node), negate);
  }

  arrow::Result<Node> In(Node operand) {
    Node node = Make(Kind::kIn, Peek().offset);
    ++at_;
    node->children.push_back(std::move(operand));
    if (!Take(IsSymbol("("))) return Unexpected("\"(\"");
    if (IsWord("SELECT")) return NotTaken(Peek(), "a subquery");
    do {
      ARROW_ASSIGN_OR_RAISE(Node item, Sum());
      node->children.push_back(std::move(item));
    } while (Take(IsSymbol(",")));
    if (!Take(IsSymbol(")"))) return Unexpected("\",\" or \")\"");
    return node;
  }

  arrow::Result<Node> Operand() {
    const Token& token = Peek();
    if (IsSymbol("(")) {
      if (++depth_ > kMaxRestrictionDepth) return TooDeep(token);
      ++at_;
      if (IsWord("SELECT")) return NotTaken(Peek(), "a subquery");
      ARROW_ASSIGN_OR_RAISE(Node inner, Or());
      if (!Take(IsSymbol(")"))) return Unexpected("\")\"");
      --depth_;
      return inner;
    }
    bool literal = token.kind == Token::Kind::kString || token.kind == Token::Kind::kBytes || token.kind == Token::Kind::kInteger ||
                   token.kind == Token::Kind::kFloat;
    if (literal) return Constant("");
    if (token.kind == Token::Kind::kQuotedName) return Column();
    if (token.kind == Token::Kind::kWord) return WordOperand();
    return Unexpected("an expression");
  }

  arrow::Result<Node> Constant(const std::string& sign) {
    const Token& token = Peek();
    Node node = Make(Kind::kLiteral, token.offset);
    node->literal = token.kind == Token::Kind::kString    ? Literal::kString
                    : token.kind == Token::Kind::kBytes   ? Literal::kBytes
                    : token.kind == Token::Kind::kInteger ? Literal::kInteger
                                                          : Literal::kFloat;
    node->text = sign + token.text;
    ++at_;
    return node;
  }

  arrow::Result<Node> WordOperand() {
    const Token& token = Peek();
    std::string word = Upper(token.text);
    if (word == "TRUE" || word == "FALSE" || word == "NULL") {
      Node node = Make(Kind::kLiteral, token.offset);
      node->literal = word == "NULL" ? Literal::kNull : Literal::kBool;
      node->text = word;
      ++at_;
      return node;
    }
    auto typed = TypedLiteral(word);
    if (typed && Peek(1).kind == Token::Kind::kString) {
      Node node = Make(Kind::kLiteral, token.offset);
      node->literal = *typed;
      node->text = Peek(1).text;
      at_ += 2;
      return node;
    }
    if (word == "JSON" && Peek(1).kind == Token::Kind::kString) return NotTaken(token, "JSON literals");
    if (IsSymbol("(", 1)) {
      if (word == "CAST") return Cast();
      if (!Among(kReserved, word) || word == "IF") return Function(word);
    }
    if (Among(kReserved, word)) return Unexpected("an expression");
    return Column();
  }

  // The name and its parenthesis are here.
  arrow::Result<Node> Function(std::string name) {
    const Token& token = Peek();
    if (Among(kNotTaken, name)) return NotTaken(token, name);
    if (++depth_ > kMaxRestrictionDepth) return TooDeep(token);
    Node node = Make(Kind::kFunction, token.offset);
    node->text = std::move(name);
    at_ += 2;
    if (!IsSymbol(")")) {
      do {
        ARROW_ASSIGN_OR_RAISE(Node argument, Or());
        node->children.push_back(std::move(argument));
      } while (Take(IsSymbol(",")));
    }
    if (!Take(IsSymbol(")"))) return Unexpected("\",\" or \")\"");
    --depth_;
    return node;
  }

  arrow::Result<Node> Cast() {
    const Token& token = Peek();
    if (++depth_ > kMaxRestrictionDepth) return TooDeep(token);
    Node node = Make(Kind::kCast, token.offset);
    at_ += 2;
    ARROW_ASSIGN_OR_RAISE(Node operand, Or());
    node->children.push_back(std::move(operand));
    if (!Take(IsWord("AS"))) return Unexpected("keyword AS");
    if (Peek().kind != Token::Kind::kWord) return Unexpected("a type");
    node->text = Upper(Peek().text);
    ++at_;
    if (IsSymbol("(") || IsSymbol("<")) return NotTaken(Peek(), fmt::format("a type with parameters ({})", node->text));
    if (IsWord("FORMAT")) return NotTaken(Peek(), "CAST with FORMAT");
    if (!Take(IsSymbol(")"))) return Unexpected("\")\"");
    --depth_;
    return node;
  }

  arrow::Result<Node> Column() {
    Node node = Make(Kind::kColumn, Peek().offset);
    do {
      const Token& token = Peek();
      if (token.kind != Token::Kind::kWord && token.kind != Token::Kind::kQuotedName) return Unexpected("a field name");
      node->path.push_back(token.text);
      ++at_;
    } while (Take(IsSymbol(".")));
    if (IsSymbol("(")) {
      std::string name;
      for (const std::string& part : node->path) name += (name.empty() ? "" : ".") + Upper(part);
      return NotTaken(Peek(), fmt::format("the function {}", name));
    }
    if (IsSymbol("[")) return NotTaken(Peek(), "array elements");
    return node;
  }

  const std::string_view text_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

arrow::Result<std::unique_ptr<SyntaxNode>> ParseRestriction(std::string_view text) {
  if (text.size() > kMaxRestrictionBytes) {
    return MakeError({.code = Code::kInvalidArgument, .resource = "row_restriction", .reason = "INVALID_RESTRICTION"},
                     fmt::format("request failed: row restriction has {} bytes, more than the limit of 1 MB", text.size()));
  }
  ARROW_ASSIGN_OR_RAISE(auto tokens, LexRestriction(text));
  return Parser(text, std::move(tokens)).Run();
}

}  // namespace headrace::local
