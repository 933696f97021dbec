// SPDX-License-Identifier: Apache-2.0

//go:build unix

package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/tests/ports"
)

// KafkaVersion is the one that scripts/fetch-servers fetches.
const KafkaVersion = "4.4.0"

// Kafka is a broker that is its own controller. It keeps its data over restarts.
type Kafka struct {
	*Process
	Address string // 127.0.0.1:port
}

// StartKafka starts a broker for one test.
func StartKafka(t testing.TB) *Kafka {
	t.Helper()
	java, err := findJava()
	if err != nil {
		t.Fatal(err)
	}
	fetched(t, "kafka-"+KafkaVersion, "lib", "kafka_2.13-"+KafkaVersion+".jar")
	classes := filepath.Join(fetched(t, "kafka-"+KafkaVersion, "lib"), "*")
	folder := newFolder(t, "kafka")
	address := ports.Free(t)
	properties := filepath.Join(folder, "server.properties")
	if err := os.WriteFile(properties, []byte(kafkaProperties(folder, address, ports.Free(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	format := exec.CommandContext(t.Context(), java, "-cp", classes, "kafka.tools.StorageTool", "format", "-t", "cnBrLW5lc3NpZS10ZXN0cw", "-c", properties)
	if text, err := format.CombinedOutput(); err != nil {
		t.Fatalf("formatting Kafka's storage: %v\n%s", err, text)
	}
	k := &Kafka{Address: address}
	k.Process = &Process{
		name: "Kafka " + KafkaVersion, folder: folder, ready: k.answers,
		command: []string{java, "-Xmx512m", "-cp", classes, "kafka.Kafka", properties},
	}
	k.start(t)
	return k
}

// answers is ready when the broker knows its topics: it takes connections before.
func (k *Kafka) answers(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Address))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

func kafkaProperties(folder, address, controller string) string {
	return fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[3]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[2]s,CONTROLLER://%[3]s
advertised.listeners=PLAINTEXT://%[2]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[1]s/data
num.partitions=3
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=250
broker.session.timeout.ms=1000
`, folder, address, controller)
}
