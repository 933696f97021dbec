// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The grammar takes in more than a query may say, such as function calls and arithmetic, so that these are refused by name
// and not as an unexpected character.

type orTree struct {
	Pos   lexer.Position
	Terms []*andTree `parser:"@@ ( 'OR' @@ )*"`
}

type andTree struct {
	Pos   lexer.Position
	Terms []*notTree `parser:"@@ ( 'AND' @@ )*"`
}

type notTree struct {
	Pos  lexer.Position
	Nots []string   `parser:"@'NOT'*"`
	Left *valueTree `parser:"@@"`
	Test *testTree  `parser:"@@?"`
}

// testTree is what may follow a value.
type testTree struct {
	Pos     lexer.Position
	Compare *compareTree `parser:"  @@"`
	Is      *isTree      `parser:"| 'IS' @@"`
	Negated bool         `parser:"| @'NOT'? ("`
	In      *listTree    `parser:"    'IN' @@"`
	Between *betweenTree `parser:"  | 'BETWEEN' @@"`
	Like    *likeTree    `parser:"  | @@ )"`
}

type compareTree struct {
	Operator string     `parser:"@Comparison"`
	Right    *valueTree `parser:"@@"`
}

type isTree struct {
	Pos     lexer.Position
	Negated bool   `parser:"@'NOT'?"`
	What    string `parser:"@( Ident | Keyword )"`
}

type listTree struct {
	Values []*valueTree `parser:"'(' @@ ( ',' @@ )* ')'"`
}

type betweenTree struct {
	Low  *valueTree `parser:"@@ 'AND'"`
	High *valueTree `parser:"@@"`
}

type likeTree struct {
	Pos      lexer.Position
	Operator string     `parser:"( @( 'LIKE' | 'ILIKE' | 'RLIKE' | 'REGEXP' ) | @'SIMILAR' 'TO' )"`
	Pattern  *valueTree `parser:"@@"`
	Escape   *valueTree `parser:"( 'ESCAPE' @@ )?"`
}

type valueTree struct {
	Pos   lexer.Position
	First *termTree         `parser:"@@"`
	Rest  []*arithmeticTree `parser:"@@*"`
}

type arithmeticTree struct {
	Pos      lexer.Position
	Operator string    `parser:"@( Arithmetic | '*' )"`
	Term     *termTree `parser:"@@"`
}

type termTree struct {
	Pos    lexer.Position
	Signs  []string   `parser:"@( '+' | '-' )*"`
	Group  *orTree    `parser:"( '(' @@ ')'"`
	Number *string    `parser:"| @Number"`
	Text   *string    `parser:"| @String"`
	Hex    *string    `parser:"| @Hex"`
	Word   *string    `parser:"| @( 'TRUE' | 'FALSE' | 'NULL' )"`
	Typed  *typedTree `parser:"| @@"`
	Call   *callTree  `parser:"| @@"`
	Column []string   `parser:"| @( Ident | Quoted ) ( '.' @( Ident | Quoted ) )* )"`
}

// typedTree is a literal with its type in front.
type typedTree struct {
	Pos  lexer.Position
	Type string `parser:"@Ident"`
	Text string `parser:"@String"`
}

type callTree struct {
	Pos       lexer.Position
	Name      string    `parser:"@Ident"`
	Arguments []*orTree `parser:"'(' ( '*' | @@ ( ',' @@ )* )? ')'"`
}

// reserved words can be column names only in quotes.
var reserved = map[string]bool{
	"AND": true, "OR": true, "NOT": true, "IN": true, "BETWEEN": true, "IS": true, "NULL": true, "LIKE": true, "TRUE": true, "FALSE": true,
	"ESCAPE": true, "ILIKE": true, "RLIKE": true, "REGEXP": true, "SIMILAR": true, "TO": true,
	"SELECT": true, "CASE": true, "DISTINCT": true, "CAST": true, "TRY_CAST": true, "EXISTS": true,
}

var queryLexer = lexer.MustSimple([]lexer.SimpleRule{
	{Name: "Space", Pattern: `\s+`},
	{Name: "Comment", Pattern: `--|/\*`},
	{Name: "Hex", Pattern: `[xX]'[^']*'`},
	{Name: "String", Pattern: `'(''|[^'])*'`},
	{Name: "Quoted", Pattern: "\"(\"\"|[^\"])+\"|`(``|[^`])+`"},
	{Name: "Number", Pattern: `(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?`},
	{Name: "Ident", Pattern: `[\p{L}_][\p{L}\p{N}_$]*`},
	{Name: "Keyword", Pattern: `\bNEVER\b\B`}, // the parser gives reserved words this type
	{Name: "Comparison", Pattern: `<=>|<>|!=|<=|>=|==|=|<|>`},
	{Name: "Arithmetic", Pattern: `\|\||::|->>?|[-+/%^&|]`},
	{Name: "Punctuation", Pattern: `[(),.*]`},
	{Name: "Other", Pattern: `(?s).`},
})

var queryParser = participle.MustBuild[orTree](
	participle.Lexer(queryLexer),
	participle.Elide("Space"),
	participle.UseLookahead(2),
	participle.Map(func(t lexer.Token) (lexer.Token, error) {
		if word := strings.ToUpper(t.Value); reserved[word] {
			t.Type, t.Value = queryLexer.Symbols()["Keyword"], word
		}
		return t, nil
	}, "Ident"),
)

// parseExpression turns a text into an expression, or an error into one that shows the text.
func parseExpression(text string) (expression, error) {
	root, err := parseTree(text)
	var e expression
	if err == nil {
		e, err = root.expression()
	}
	var r *refusal
	var unexpected participle.Error
	switch {
	case err == nil:
		return e, nil
	case errors.As(err, &r):
		return nil, &QueryError{Text: text, Offset: r.at, Reason: r.reason}
	case errors.As(err, &unexpected):
		return nil, &QueryError{Text: text, Offset: unexpected.Position().Offset, Reason: unexpectedly(text, unexpected)}
	}
	return nil, err
}

func parseTree(text string) (*orTree, error) {
	tokens, err := queryParser.Lex("", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := refuseTokens(tokens); err != nil {
		return nil, err
	}
	return queryParser.ParseString("", text)
}

// refuseTokens refuses by name what the grammar has no room for.
func refuseTokens(tokens []lexer.Token) error {
	if at, ok := beginsWithWhere(tokens); ok {
		return refuseAt(at, "leave WHERE out: a query is what stands after it")
	}
	depth := 0
	for _, t := range tokens {
		at := t.Pos.Offset
		switch {
		case t.EOF():
		case t.Value == "(":
			if depth++; depth > maxQueryNesting {
				return refuseAt(at, "parentheses are nested more than %d deep", maxQueryNesting)
			}
		case t.Value == ")":
			depth--
		case t.Value == "SELECT" || t.Value == "EXISTS":
			return refuseAt(at, "subqueries are not supported")
		case t.Value == "CASE" || t.Value == "DISTINCT":
			return refuseAt(at, "%s is not supported", t.Value)
		case t.Value == "CAST" || t.Value == "TRY_CAST" || t.Value == "::":
			return refuseAt(at, "casts are not supported: write the literal in the column's type")
		case t.Value == "--" || t.Value == "/*":
			return refuseAt(at, "comments are not supported")
		case t.Value == "'":
			return refuseAt(at, "the string that begins here has no end")
		case t.Value == `"` || t.Value == "`":
			return refuseAt(at, "the quoted name that begins here is empty or has no end")
		case t.Value == "?" || t.Value == ":":
			return refuseAt(at, "parameters are not supported")
		case t.Value == ";":
			return refuseAt(at, "one expression is expected, without a semicolon")
		}
	}
	return nil
}

// beginsWithWhere finds the word, which a column of this name is not.
func beginsWithWhere(tokens []lexer.Token) (at int, ok bool) {
	types := queryLexer.Symbols()
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t lexer.Token) bool { return t.Type == types["Space"] })
	if len(tokens) < 2 || tokens[0].Type != types["Ident"] || !strings.EqualFold(tokens[0].Value, "WHERE") {
		return 0, false
	}
	at = tokens[0].Pos.Offset
	switch next := tokens[1]; next.Type {
	case types["Ident"], types["Quoted"], types["Number"], types["String"], types["Hex"]:
		return at, true
	default:
		return at, next.Value == "("
	}
}

// unexpectedly says what a syntax error found.
func unexpectedly(text string, err participle.Error) string {
	at := min(err.Position().Offset, len(text))
	if strings.TrimSpace(text) == "" {
		return "the query is empty"
	}
	rest, lexErr := queryParser.Lex("", strings.NewReader(text[at:]))
	if lexErr != nil || len(rest) == 0 {
		return err.Message()
	}
	found := rest[0]
	if found.Type == queryLexer.Symbols()["Space"] && len(rest) > 1 {
		found = rest[1]
	}
	if found.EOF() {
		return "the query ends too early"
	}
	if reserved[found.Value] {
		return fmt.Sprintf("syntax error: unexpected %s; a column of this name has to be quoted", found.Value)
	}
	return fmt.Sprintf("syntax error: unexpected %s", clip(found.Value))
}

// clip shortens what is quoted in a message.
func clip(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
