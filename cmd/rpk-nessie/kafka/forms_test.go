// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLintRefusesTheDurationsAndSizesThatTheStartRefuses(t *testing.T) {
	durations := map[string]bool{"10s": true, "'1m'": true, "soon": false, "10": false, "1d": false, "10 s": false}
	positive := map[string]bool{"10s": true, "0s": false, "-1s": false, "soon": false}
	sizes := map[string]bool{"1MiB": true, "2000000": true, "2 MB": true, "12xx": false, "3GiB": false, "-1": false, "much": false}
	for name, values := range map[string]map[string]bool{
		"metadata_max_age": durations, "request_timeout_overhead": durations, "conn_idle_timeout": durations, "fetch_max_wait": durations, "timeout": durations,
		"commit_period": positive, "session_timeout": positive, "rebalance_timeout": positive, "heartbeat_interval": positive,
		"fetch_max_bytes": sizes, "fetch_min_bytes": sizes, "fetch_max_partition_bytes": sizes, "max_message_bytes": sizes, "broker_write_max_bytes": sizes,
	} {
		for value, fine := range values {
			lints, started := lintAndStart(t, name, value)
			assert.Equal(t, fine, len(lints) == 0, "%s: %s\n%v", name, value, lints)
			assert.Equal(t, fine, started == nil, "%s: %s\n%v", name, value, started)
		}
	}
}

// lintAndStart makes an input or an output with one more field, whichever has it.
func lintAndStart(t *testing.T, name, value string) (lints []service.Lint, started error) {
	t.Helper()
	linter := service.GlobalEnvironment().NewComponentConfigLinter()
	if name == "timeout" || name == "max_message_bytes" || name == "broker_write_max_bytes" {
		yaml := "{ seed_brokers: [ localhost:1 ], topic: orders, " + name + ": " + value + " }"
		lints, err := linter.LintOutputYAML([]byte("kafka_franz: " + yaml))
		require.NoError(t, err)
		_, started = newWriter(parse(t, outputSpec(), yaml), service.MockResources().Logger())
		return lints, started
	}
	yaml := "{ seed_brokers: [ localhost:1 ], topics: [ orders ], consumer_group: g, " + name + ": " + value + " }"
	lints, err := linter.LintInputYAML([]byte("kafka_franz: " + yaml))
	require.NoError(t, err)
	r, started := newReader(parse(t, inputSpec(), yaml), service.MockResources())
	if started == nil {
		require.NoError(t, r.Close(context.Background()))
	}
	return lints, started
}
