// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type filterParser struct {
	variable string
	tokens   []string // strings keep their quote in front, and are unescaped behind it
	whole    string
}

var filterToken = regexp.MustCompile(`^\s*(&&|\|\||==|!=|[().,\[\]]|[A-Za-z_]\w*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`)

func (p *filterParser) split(text string) error {
	p.whole = text
	for rest := text; strings.TrimSpace(rest) != ""; {
		found := filterToken.FindStringSubmatch(rest)
		if found == nil {
			return p.refuse()
		}
		token := found[1]
		if token[0] == '\'' || token[0] == '"' {
			value, err := unescape(token[1 : len(token)-1])
			if err != nil {
				return p.refuse()
			}
			token = "'" + value
		}
		p.tokens = append(p.tokens, token)
		rest = rest[len(found[0]):]
	}
	return nil
}

func unescape(s string) (string, error) {
	// strconv reads the escapes that CEL shares with Go, with a quote of one kind inside quotes of the other let through.
	s = strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, "\\`", "`", `\?`, `?`, `"`, `\"`).Replace(s)
	return strconv.Unquote(`"` + s + `"`)
}

func (p *filterParser) refuse() error {
	return badRequest("the in-memory Nessie does not know the filter %q (at %q)", p.whole, strings.Join(p.tokens, " "))
}

func (p *filterParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *filterParser) take() string {
	token := p.peek()
	if token != "" {
		p.tokens = p.tokens[1:]
	}
	return token
}

func (p *filterParser) expect(token string) error {
	if p.peek() != token {
		return p.refuse()
	}
	p.take()
	return nil
}

func (p *filterParser) disjunction() (*expression, error) { return p.joined("||", p.conjunction) }

func (p *filterParser) conjunction() (*expression, error) { return p.joined("&&", p.comparison) }

func (p *filterParser) joined(operator string, side func() (*expression, error)) (*expression, error) {
	first, err := side()
	if err != nil || p.peek() != operator {
		return first, err
	}
	whole := &expression{operator: operator, sides: []*expression{first}}
	for p.peek() == operator {
		p.take()
		next, err := side()
		if err != nil {
			return nil, err
		}
		whole.sides = append(whole.sides, next)
	}
	return whole, nil
}

func (p *filterParser) comparison() (*expression, error) {
	if p.peek() == "(" {
		p.take()
		e, err := p.disjunction()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	}
	field, err := p.field()
	if err != nil {
		return nil, err
	}
	e := &expression{operator: p.take(), field: field}
	switch e.operator {
	case "startsWith":
		if err := p.expect("("); err != nil {
			return nil, err
		}
		if err := p.operand(e); err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case "==", "!=", "in":
		err := p.operand(e)
		return e, err
	}
	return nil, p.refuse()
}

// field reads variable.name, and leaves a method's name behind it for the operator.
func (p *filterParser) field() (string, error) {
	if err := p.expect(p.variable); err != nil {
		return "", err
	}
	var names []string
	for p.peek() == "." {
		p.take()
		if p.peek() == "startsWith" {
			break
		}
		names = append(names, p.take())
	}
	name := strings.Join(names, ".")
	if !slices.Contains(fieldsOf[p.variable], name) {
		return "", badRequest("undefined field '%s' in the filter %q", name, p.whole)
	}
	return name, nil
}

// operand reads a string, or a list of strings where the operator or the field wants one.
func (p *filterParser) operand(e *expression) error {
	wantsList := e.operator == "in" || e.field == "keyElements"
	if e.field == "keyElements" && e.operator != "==" && e.operator != "!=" {
		return p.refuse()
	}
	if !wantsList {
		return p.text(e)
	}
	if err := p.expect("["); err != nil {
		return err
	}
	for p.peek() != "]" {
		if len(e.texts) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		if err := p.text(e); err != nil {
			return err
		}
	}
	return p.expect("]")
}

func (p *filterParser) text(e *expression) error {
	value, ok := strings.CutPrefix(p.peek(), "'")
	if !ok {
		return p.refuse()
	}
	p.take()
	e.texts = append(e.texts, value)
	return nil
}
