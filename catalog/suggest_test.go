// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	noReference = `{"status":404,"reason":"Not Found","message":"Named reference not found","errorCode":"REFERENCE_NOT_FOUND"}`
	noContent   = `{"status":404,"reason":"Not Found","message":"Could not find content","errorCode":"CONTENT_NOT_FOUND"}`
)

// shop is a server with the branches main and feature/x and a few tables; everything else is unknown to it.
func shop(t *testing.T) *server {
	entry := func(kind, elements string) string {
		return fmt.Sprintf(`{"type":%q,"name":{"elements":[%s]}}`, kind, elements)
	}
	s := newServer(t, map[string]http.HandlerFunc{
		"/trees": answerJSON(`{"hasMore":false,"references":[{"type":"BRANCH","name":"main","hash":"` + hashA + `"},` +
			`{"type":"BRANCH","name":"feature/x","hash":"` + hashB + `"}]}`),
		"/trees/main": answerJSON(`{"reference":{"type":"BRANCH","name":"main","hash":"` + hashA + `"}}`),
		"/trees/main@" + hashA + "/entries": answerJSON(`{"hasMore":false,"entries":[` +
			entry("NAMESPACE", `"shop"`) + "," + entry("ICEBERG_TABLE", `"shop","orders"`) + "," + entry("ICEBERG_TABLE", `"shop","orders2"`) + "," +
			entry("ICEBERG_TABLE", `"shop","customers"`) + "," + entry("ICEBERG_TABLE", `"old","returns"`) + "," + entry("ICEBERG_TABLE", `"rooted"`) + `]}`),
	})
	for _, key := range []string{"shop.oders", "shop.returns", "shopp.orders", "old.ORDERS", "roted", "shop.zzz"} {
		s.answers["/trees/main/contents/"+key] = answerStatus(404, noContent)
	}
	for _, ref := range []string{"mian", "main@" + hashB, "feture%2Fx@" + hashB, "@" + hashB} {
		s.answers["/trees/"+ref] = answerStatus(404, noReference)
		s.answers["/trees/"+ref+"/contents/shop.orders"] = answerStatus(404, noReference)
	}
	s.answers["/trees/feture%2Fx"] = answerStatus(404, noReference)
	return s
}

func TestUnknownPartsAreNamedWithCloseNames(t *testing.T) {
	main := Ref{Name: "main"}
	tests := []struct {
		name string
		ref  Ref
		key  Key
		want string
		is   error
	}{
		{"branch", Ref{Name: "mian"}, Key{"shop", "orders"}, `branch or tag "mian" does not exist; close names that do: main`, ErrUnknownReference},
		{"branch of a pinned reference", Ref{"feture/x", hashB}, Key{"shop", "orders"}, `branch or tag "feture/x" does not exist; close names that do: feature/x`, ErrUnknownReference},
		{"commit of a branch", Ref{"main", hashB}, Key{"shop", "orders"}, `commit "` + hashB + `" does not exist`, ErrUnknownReference},
		{"commit alone", Ref{Hash: hashB}, Key{"shop", "orders"}, `commit "` + hashB + `" does not exist`, ErrUnknownReference},
		{"table", main, Key{"shop", "oders"}, `table "oders" does not exist in namespace "shop" on main; close names that do: orders, orders2`, ErrUnknownContent},
		{"table in another namespace", main, Key{"shop", "returns"}, `table "returns" does not exist in namespace "shop" on main; close names that do: old.returns`, ErrUnknownContent},
		{"table with nothing close", main, Key{"shop", "zzz"}, `table "zzz" does not exist in namespace "shop" on main`, ErrUnknownContent},
		{"table at the root", main, Key{"roted"}, `table "roted" does not exist on main; close names that do: rooted`, ErrUnknownContent},
		{"namespace", main, Key{"shopp", "orders"}, `namespace "shopp" does not exist on main; close names that do: shop`, ErrUnknownContent},
		{"namespace that no entry was made for", main, Key{"old", "ORDERS"}, `table "ORDERS" does not exist in namespace "old" on main`, ErrUnknownContent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := newClient(t, ClientConfig{BaseURL: shop(t).URL}).Head(t.Context(), test.ref, test.key)
			var unknown *UnknownError
			require.ErrorAs(t, err, &unknown)
			require.EqualError(t, unknown, test.want)
			require.ErrorIs(t, err, test.is)
		})
	}
}

func TestUnknownStaysUnknownWhenNothingCanBeListed(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/main/contents/a.b": answerStatus(404, noContent), "/trees/x": answerStatus(404, noReference)})
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	_, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"a", "b"})
	require.ErrorIs(t, err, ErrUnknownContent)
	require.EqualError(t, err, `reading table a.b on main: table "b" does not exist in namespace "a" on main`)
	_, err = c.Reference(t.Context(), "x")
	require.EqualError(t, err, `looking up reference x: branch or tag "x" does not exist`)
}

func TestCloseNames(t *testing.T) {
	names := []string{"orders", "Orders", "order_items", "border", "odd", "x"}
	assert.Equal(t, []string{"Orders", "orders", "border"}, closeNames("orders", names))
	assert.Equal(t, []string{"odd"}, closeNames("od", names))
	assert.Empty(t, closeNames("y", names))
}

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"main", "mian", 1}, {"kitten", "sitting", 3}, {"日本", "日木", 1}, {"ca", "abc", 3}} {
		assert.Equal(t, test.want, editDistance([]rune(test.a), []rune(test.b)), test)
	}
	text := rapid.StringMatching(`[ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := []rune(text.Draw(t, "a")), []rune(text.Draw(t, "b"))
		far := editDistance(a, b)
		assert.Equal(t, far, editDistance(b, a))
		assert.Equal(t, string(a) == string(b), far == 0)
		assert.LessOrEqual(t, far, max(len(a), len(b)))
		assert.GreaterOrEqual(t, far, max(len(a)-len(b), len(b)-len(a)))
	})
}
