// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, spec *service.ConfigSpec, yaml string) *service.ParsedConfig {
	t.Helper()
	conf, err := spec.ParseYAML(yaml, nil)
	require.NoError(t, err)
	return conf
}
