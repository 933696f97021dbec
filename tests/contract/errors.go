// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (s *suite) errors(t *testing.T) {
	branch, _ := s.newTable(t, s.branch(t), "t", 1)
	for name, c := range map[string]struct {
		path   string
		status int
		code   string
	}{
		"an unknown branch":        {tree("nope", ""), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"a table on no branch":     {tree("nope", "/contents/ns.t"), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"the log of no branch":     {tree("nope", "/history"), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"the entries of no branch": {tree("nope", "/entries"), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"the difference to none":   {tree(branch.Name, "/diff/nope"), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"an unknown commit":        {tree(branch.Name+"@"+neverWas, "/contents/ns.t"), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"a short hash":             {tree(branch.Name+"@"+branch.Hash[:20], "/contents/ns.t"), http.StatusNotFound, "REFERENCE_NOT_FOUND"},
		"a hash that is none":      {tree(branch.Name+"@xyz", "/contents/ns.t"), http.StatusBadRequest, "BAD_REQUEST"},
		"a name that is none":      {tree("9", "/contents/ns.t"), http.StatusBadRequest, "BAD_REQUEST"},
		"an unknown table":         {tree(branch.Name, "/contents/ns.nope"), http.StatusNotFound, "CONTENT_NOT_FOUND"},
		"a table in no namespace":  {tree(branch.Name, "/contents/nope.t"), http.StatusNotFound, "CONTENT_NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := s.ask(t, http.MethodGet, c.path, nil, nil)
			require.Equal(t, c.status, status, answer)
			assert.Equal(t, c.code, answer["errorCode"])
			assert.Equal(t, json.Number(strconv.Itoa(c.status)), answer["status"])
			assert.Equal(t, http.StatusText(c.status), answer["reason"])
			assert.NotEmpty(t, answer["message"])
			assert.Contains(t, answer, "serverStackTrace")
		})
	}
	t.Run("no such path", func(t *testing.T) {
		status, _ := s.ask(t, http.MethodGet, "/nope", nil, nil)
		assert.Equal(t, http.StatusNotFound, status)
	})
	t.Run("no such method", func(t *testing.T) {
		status, _ := s.ask(t, http.MethodDelete, "/trees", nil, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, status)
	})
}
