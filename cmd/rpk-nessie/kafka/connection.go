// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/redpanda-data/benthos/v4/public/utils/netutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/forms"
)

const (
	kfFieldSeedBrokers     = "seed_brokers"
	kfFieldClientID        = "client_id"
	kfFieldTLS             = "tls"
	kfFieldTCP             = "tcp" // netutil's own name
	kfFieldMetadataMaxAge  = "metadata_max_age"
	kfFieldRequestOverhead = "request_timeout_overhead"
	kfFieldConnIdle        = "conn_idle_timeout"

	defaultClientID = "rpk-nessie"

	// metadataMinAge is how old metadata is at least before the client asks again because something failed.
	metadataMinAge = 5 * time.Second

	// pingTimeout bounds how long Connect looks for a broker that answers.
	pingTimeout = 10 * time.Second
)

// connectionFields say where the cluster is and as whom it is asked; input and output share them.
func connectionFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(kfFieldSeedBrokers).
			Description("Addresses of brokers to begin with; the others are learned from them. An item may hold several addresses, separated by commas.").
			Example([]string{"localhost:9092"}).
			Example([]string{"kafka-1:9092", "kafka-2:9092"}).
			Example([]string{"kafka-1:9092,kafka-2:9092"}),
		service.NewStringField(kfFieldClientID).
			Description("The name of this client in the brokers' logs and quotas.").
			Default(defaultClientID).
			Advanced(),
		service.NewTLSToggledField(kfFieldTLS),
		saslField(),
		service.NewDurationField(kfFieldMetadataMaxAge).
			LintRule(forms.Duration).
			Description("How old the picture of topics, partitions and leaders may get before it is asked for again.").
			Default("1m").
			Advanced(),
		service.NewDurationField(kfFieldRequestOverhead).
			LintRule(forms.Duration).
			Description("How long a broker may take for a request beyond the time that the request itself allows it.").
			Default("10s").
			Advanced(),
		service.NewDurationField(kfFieldConnIdle).
			LintRule(forms.Duration).
			Description("How long a connection may be idle before it is closed.").
			Default("20s").
			Advanced(),
		netutil.DialerConfigSpec(),
	}
}

// connectionOptions are the client's options for connectionFields.
func connectionOptions(conf *service.ParsedConfig, log *service.Logger) ([]kgo.Opt, error) {
	seeds, err := conf.FieldStringList(kfFieldSeedBrokers)
	if err != nil {
		return nil, err
	}
	brokers := addresses(seeds)
	if len(brokers) == 0 {
		return nil, errors.New("seed_brokers needs at least one address")
	}
	clientID, err := conf.FieldString(kfFieldClientID)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.ClientID(clientID), kgo.WithLogger(&clientLog{log}),
		// What the client does and how it fares is not the brokers' business.
		kgo.DisableClientMetrics(),
	}
	for _, f := range []struct {
		name string
		opt  func(time.Duration) kgo.Opt
	}{
		{kfFieldMetadataMaxAge, kgo.MetadataMaxAge},
		{kfFieldMetadataMaxAge, func(d time.Duration) kgo.Opt { return kgo.MetadataMinAge(min(d, metadataMinAge)) }},
		{kfFieldRequestOverhead, kgo.RequestTimeoutOverhead},
		{kfFieldConnIdle, kgo.ConnIdleTimeout},
	} {
		d, err := conf.FieldDuration(f.name)
		if err != nil {
			return nil, err
		}
		opts = append(opts, f.opt(d))
	}
	dial, err := dialer(conf)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.Dialer(dial))
	mechanisms, err := saslMechanisms(conf)
	if err != nil {
		return nil, err
	}
	return append(opts, kgo.SASL(mechanisms...)), nil
}

// dialTimeout is how long a connection may take to be made, unless tcp says otherwise.
const dialTimeout = 10 * time.Second

// dialer is how connections are made: the fields tcp and tls.
func dialer(conf *service.ParsedConfig) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	plain := &net.Dialer{}
	if conf.Contains(kfFieldTCP) {
		tcp, err := netutil.DialerConfigFromParsed(conf.Namespace(kfFieldTCP))
		if err != nil {
			return nil, err
		}
		if err := netutil.DecorateDialer(plain, tcp); err != nil {
			return nil, fmt.Errorf("%s: %w", kfFieldTCP, err)
		}
	}
	if plain.Timeout == 0 {
		plain.Timeout = dialTimeout
	}
	config, enabled, err := conf.FieldTLSToggled(kfFieldTLS)
	if err != nil || !enabled {
		return plain.DialContext, err
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext, nil
}

// addresses splits items at commas.
func addresses(items []string) []string {
	var all []string
	for _, item := range items {
		for part := range strings.SplitSeq(item, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// validated refuses what the client would refuse at Connect.
func validated(opts []kgo.Opt) ([]kgo.Opt, error) {
	if err := kgo.ValidateOpts(opts...); err != nil {
		return nil, fmt.Errorf("checking the settings: %w", err)
	}
	return opts, nil
}

// connect makes a client and sees that a broker answers.
func connect(ctx context.Context, opts []kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making a Kafka client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("looking for a broker at %s: %w", strings.Join(seedsOf(client), ", "), err)
	}
	return client, nil
}

func seedsOf(client *kgo.Client) []string {
	seeds, _ := client.OptValue(kgo.SeedBrokers).([]string)
	return seeds
}

// bytesOf reads a size such as 1MiB.
func bytesOf(conf *service.ParsedConfig, name string) (int32, error) {
	text, err := conf.FieldString(name)
	if err != nil {
		return 0, err
	}
	n, err := humanize.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is no size; write for example 1MiB", name, text)
	}
	if n > math.MaxInt32 {
		return 0, fmt.Errorf("%s: %s is more than Kafka's limit of 2GiB", name, text)
	}
	return int32(n), nil
}

// clientLog hands the client's warnings and errors to the component's log. What is below is about single requests.
type clientLog struct{ log *service.Logger }

func (l *clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l *clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	log := l.log.With(keyvals...)
	if level == kgo.LogLevelError {
		log.Error(msg)
		return
	}
	log.Warn(msg)
}
