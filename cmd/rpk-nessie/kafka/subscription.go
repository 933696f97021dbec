// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

// subscription is what the items of topics and of patterns mean.
type subscription struct {
	topics     []string
	patterns   bool // topics are regular expressions
	exclude    []string
	partitions map[string]map[int32]kgo.Offset
}

// subscriptionOf reads the fields that say which topics are consumed.
func subscriptionOf(conf *service.ParsedConfig) (s subscription, err error) {
	var topics, include, exclude []string
	for _, f := range []struct {
		name string
		to   *[]string
	}{{kfiFieldTopics, &topics}, {kfiFieldRegexpInclude, &include}, {kfiFieldRegexpExclude, &exclude}} {
		if conf.Contains(f.name) {
			if *f.to, err = conf.FieldStringList(f.name); err != nil {
				return s, err
			}
		}
	}
	patterns, err := conf.FieldBool(kfiFieldRegexpTopics)
	if err != nil {
		return s, err
	}
	switch {
	case len(topics) > 0 && len(include) > 0:
		return s, fmt.Errorf("%s and %s exclude each other", kfiFieldTopics, kfiFieldRegexpInclude)
	case patterns && len(include) == 0:
		include = topics
	}
	if len(include) > 0 {
		return parsePatterns(include, exclude)
	}
	if len(exclude) > 0 {
		return s, fmt.Errorf("%s needs %s", kfiFieldRegexpExclude, kfiFieldRegexpInclude)
	}
	start, err := startOf(conf)
	if err != nil {
		return s, err
	}
	return parseTopics(topics, start)
}

// options are the client's options for the subscription.
func (s subscription) options() []kgo.Opt {
	opts := []kgo.Opt{kgo.ConsumeTopics(s.topics...)}
	if s.patterns {
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeExcludeTopics(s.exclude...))
	}
	if len(s.partitions) > 0 {
		opts = append(opts, kgo.ConsumePartitions(s.partitions))
	}
	return opts
}

// parsePatterns takes each item for a regular expression.
func parsePatterns(include, exclude []string) (subscription, error) {
	for _, item := range slices.Concat(include, exclude) {
		if _, err := regexp.Compile(item); err != nil {
			return subscription{}, fmt.Errorf("topics: %q: %w", item, err)
		}
	}
	return subscription{topics: include, patterns: true, exclude: exclude}, nil
}

// parseTopics reads items such as foo, foo:0, foo:0-5 and foo:0:1000, several of them parted by commas. Partitions without
// an offset begin at start.
func parseTopics(items []string, start kgo.Offset) (subscription, error) {
	s := subscription{partitions: map[string]map[int32]kgo.Offset{}}
	for _, item := range addresses(items) {
		topic, rest, explicit := strings.Cut(item, ":")
		if topic == "" {
			return s, fmt.Errorf("topics: %q names no topic", item)
		}
		if !explicit {
			s.topics = append(s.topics, topic)
			continue
		}
		first, last, offset, err := parsePartitions(rest, start)
		if err != nil {
			return s, fmt.Errorf("topics: %q: %w", item, err)
		}
		if s.partitions[topic] == nil {
			s.partitions[topic] = map[int32]kgo.Offset{}
		}
		for p := first; p <= last; p++ {
			s.partitions[topic][p] = offset
		}
	}
	if len(s.topics)+len(s.partitions) == 0 {
		return s, fmt.Errorf("topics needs at least one topic")
	}
	return s, nil
}

// mostPartitions bounds a range: brokers hold no more, and a typing error should not fill the memory.
const mostPartitions = 1_000_000

// parsePartitions reads what stands behind a topic: partition or range, and maybe an offset.
func parsePartitions(text string, start kgo.Offset) (first, last int32, offset kgo.Offset, err error) {
	span, at, hasOffset := strings.Cut(text, ":")
	from, to, isRange := strings.Cut(span, "-")
	if !isRange {
		to = from
	}
	if first, err = parsePartition(from); err != nil {
		return 0, 0, offset, err
	}
	if last, err = parsePartition(to); err != nil {
		return 0, 0, offset, err
	}
	if last < first {
		return 0, 0, offset, fmt.Errorf("partition %d is after %d", first, last)
	}
	if !hasOffset {
		return first, last, start, nil
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || n < 0 {
		return 0, 0, offset, fmt.Errorf("%q is no offset", at)
	}
	return first, last, kgo.NewOffset().At(n), nil
}

func parsePartition(text string) (int32, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 0 || n > mostPartitions {
		return 0, fmt.Errorf("%q is no partition", text)
	}
	return int32(n), nil
}
