// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/contract"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInMemory(t *testing.T) {
	for name, old := range map[string]bool{"2.2.0": false, "2.0.0": true} {
		t.Run(name, func(t *testing.T) {
			server, err := nessietest.Start(nessietest.Options{SpecVersion: name})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, server.Close()) })
			contract.Run(t, server.URL, contract.Options{Old: old})
		})
	}
}

func TestReal(t *testing.T) {
	for version, old := range map[string]bool{servers.Current: false, servers.Old: true} {
		t.Run(version, func(t *testing.T) {
			server := servers.Start(t, servers.Options{Version: version})
			contract.Run(t, server.URL, contract.Options{Old: old})
		})
	}
}
