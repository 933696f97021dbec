// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/smithy-go"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// target is the table that a command looks at, with the settings of the input that reads it.
type target struct {
	*nessie.Inspector
	label string
	// cacheType is the type of the cache resource that holds the checkpoint; "" where there is none.
	cacheType string
}

const (
	flagConfig    = "config"
	flagResources = "resources"
	flagTemplates = "templates"
	flagLabel     = "label"
	flagEnvFile   = "env-file"
	flagJSON      = "json"
)

// targetFlags name the table: a pipeline's own settings, or what is needed to reach it.
func targetFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: flagConfig, Aliases: []string{"c"}, Usage: "take the settings from the nessie input of this pipeline `FILE`"},
		&cli.StringSliceFlag{Name: flagResources, Aliases: []string{"r"}, Usage: "also read resources from `FILE`s, as for run"},
		&cli.StringSliceFlag{Name: flagTemplates, Aliases: []string{"t"}, Usage: "import templates from `FILE`s, as for run"},
		&cli.StringSliceFlag{Name: flagEnvFile, Aliases: []string{"e"}, Usage: "set environment variables from dotenv `FILE`s, as for run"},
		&cli.StringFlag{Name: flagLabel, Usage: "which input, where the pipeline has several: its `LABEL`, or its path in the file"},
	}
	for _, f := range tableFlags {
		flags = append(flags, &cli.StringFlag{Name: f.name, Usage: "without --config: " + f.usage})
	}
	return append(flags, &cli.BoolFlag{Name: "s3-path-style", Usage: "without --config: address buckets by path, as many S3 compatible stores need it"})
}

// tableFlags stand for fields of the input; env is a variable that does where the flag is not given.
var tableFlags = []struct {
	name, usage, env string
	field            []string
}{
	{"base-url", "`URL` of the Nessie server", "", []string{"base_url"}},
	{"branch", "branch or tag, or name@hash (main)", "", []string{"branch"}},
	{"namespace", "`NAMESPACE` of the table", "", []string{"namespace"}},
	{"table", "`NAME` of the table", "", []string{"table"}},
	{"bearer", "bearer `TOKEN` for the Nessie server; better in the environment, as RPK_NESSIE_BEARER", "RPK_NESSIE_BEARER", []string{"auth", "bearer"}},
	{"s3-endpoint", "`URL` of an S3 compatible store; credentials come from the environment, as for the AWS tools", "", []string{"storage", "aws_s3", "endpoint"}},
	{"s3-region", "`REGION` of the buckets", "", []string{"storage", "aws_s3", "region"}},
	{"local-root", "`FOLDER` below which file: locations may be read", "", []string{"storage", "local_root"}},
	{"checkpoint-dir", "`FOLDER` of a nessie_durable_file cache that holds the checkpoint", "", nil},
	{"checkpoint-key", "`KEY` of the checkpoint, where it is not the derived one", "", []string{"checkpoint_cache_key"}},
}

// afterInterrupt is how long a command may take to end once it is interrupted. One that takes longer is held by what no
// context ends: whoever reads its output, or is to answer a question.
const afterInterrupt = time.Second

// withTarget runs a command on the table that its flags name. An interrupt ends its context, and soon after that the
// process.
func withTarget(c *cli.Context, use func(context.Context, *target) error) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- onTarget(ctx, c, use) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(afterInterrupt):
		}
	}
	if ctx.Err() == nil {
		return err
	}
	return cli.Exit("interrupted", exitInterrupted)
}

func onTarget(ctx context.Context, c *cli.Context, use func(context.Context, *target) error) error {
	t, closeTarget, err := openTarget(c)
	if err != nil {
		return err
	}
	used := use(ctx, t)
	closed := closeTarget()
	if used != nil {
		return adviseCredentials(used)
	}
	return closed
}

// adviseCredentials says how S3 gets credentials where it has none, or others than it knows.
func adviseCredentials(err error) error {
	var answer smithy.APIError
	refused := errors.As(err, &answer) && slices.Contains([]string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}, answer.ErrorCode())
	// The SDK has no type for this: it makes a text of what each of its places said.
	if !refused && !strings.Contains(err.Error(), "get credentials:") {
		return err
	}
	return fmt.Errorf("%w\nSet storage.aws_s3.credentials, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, which -e reads from a file", err)
}

func openTarget(c *cli.Context) (*target, func() error, error) {
	if err := setEnvFiles(c.StringSlice(flagEnvFile)); err != nil {
		return nil, nil, err
	}
	p, err := pipelineOf(c)
	if err != nil {
		return nil, nil, err
	}
	in, err := p.choose(c.String(flagLabel))
	if err != nil {
		return nil, nil, err
	}
	res, closeResources, err := p.build()
	if err != nil {
		return nil, nil, err
	}
	inspector, err := nessie.NewInspector(in.conf, res)
	if err != nil {
		return nil, nil, errors.Join(err, closeResources(context.Background()))
	}
	t := &target{Inspector: inspector, label: in.name(), cacheType: p.cacheTypes[in.conf.CheckpointCache]}
	return t, func() error { return errors.Join(inspector.Close(), closeResources(context.Background())) }, nil
}

// pipelineOf reads the pipeline that --config names, or makes one of the flags.
func pipelineOf(c *cli.Context) (*inspected, error) {
	given := slices.DeleteFunc([]string{"s3-path-style"}, func(name string) bool { return !c.IsSet(name) })
	for _, f := range tableFlags {
		if c.IsSet(f.name) {
			given = append(given, f.name)
		}
	}
	switch {
	case c.String(flagConfig) != "" && len(given) > 0:
		return nil, fmt.Errorf("--%s says it without --%s: give one of them", flagConfig, strings.Join(given, ", --"))
	case c.String(flagConfig) != "":
		return inspectFiles(c.String(flagConfig), c.StringSlice(flagResources), c.StringSlice(flagTemplates))
	case c.String("base-url") == "" || c.String("table") == "" || c.String("namespace") == "":
		return nil, errors.New("name the table with --config FILE, or with --base-url, --namespace and --table")
	}
	return pipelineOfFlags(c)
}

func pipelineOfFlags(c *cli.Context) (*inspected, error) {
	input := map[string]any{"incremental_by_snapshot": true, "snapshot_checkpoints": false}
	set := func(value any, path ...string) {
		at := input
		for _, name := range path[:len(path)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	for _, f := range tableFlags {
		v := c.String(f.name)
		if v == "" && f.env != "" {
			v = os.Getenv(f.env)
		}
		if v != "" && f.field != nil {
			set(v, f.field...)
		}
	}
	if c.Bool("s3-path-style") {
		set(true, "storage", "aws_s3", "force_path_style_urls")
	}
	pipeline := map[string]any{"input": map[string]any{"nessie": input}}
	if dir := c.String("checkpoint-dir"); dir != "" {
		set(true, "snapshot_checkpoints")
		set("checkpoints", "checkpoint_cache")
		pipeline["cache_resources"] = []any{map[string]any{"label": "checkpoints", "nessie_durable_file": map[string]any{"directory": dir}}}
	}
	text, err := yaml.Marshal(pipeline)
	if err != nil {
		return nil, err
	}
	p := &inspected{cacheTypes: map[string]string{}}
	return p, p.add(string(text))
}

// build makes the caches and rate limits, and nothing that reads or writes by itself.
func (p *inspected) build() (*service.Resources, func(context.Context) error, error) {
	b := service.NewResourceBuilder()
	b.SetEnvVarLookupFunc(keepForms) // they are replaced already
	b.DisableLinting()
	if err := b.SetMetricsYAML("none: {}"); err != nil {
		return nil, nil, err
	}
	for _, r := range p.resources {
		add := b.AddCacheYAML
		if r.kind == "rate_limit" {
			add = b.AddRateLimitYAML
		}
		if err := add(r.yaml); err != nil {
			return nil, nil, fmt.Errorf("making the %s resources: %w", strings.ReplaceAll(r.kind, "_", " "), err)
		}
	}
	return b.Build()
}

// keepForms leaves ${NAME} as it is, in text whose variables are replaced and where it stands for itself.
func keepForms(_ context.Context, name string) (string, bool) { return "${" + name + "}", true }

// at is what --at names: a reference ("main", "v1.0", "name@hash", "@hash"), or a snapshot id.
type at struct {
	ref      catalog.Ref
	snapshot *int64
}

// look reads the table as --at says, else as the input's reference has it. A snapshot id is looked for on the reference:
// in its history, however far back.
func (t *target) look(ctx context.Context, where string) (*nessie.Look, catalog.State, error) {
	place, err := parseAt(where, t.Config.Ref)
	if err != nil {
		return nil, catalog.State{}, err
	}
	l, err := t.Look(ctx, place.ref)
	if err != nil || place.snapshot == nil {
		if err != nil {
			return nil, catalog.State{}, err
		}
		return l, l.State, nil
	}
	s, err := t.find(ctx, l, *place.snapshot)
	return l, s, err
}

// find looks for a snapshot of the table: on the way that leads to what is looked at, else wherever it is. Hidden
// snapshots are found only by way of what was built on them.
func (t *target) find(ctx context.Context, l *nessie.Look, id int64) (catalog.State, error) {
	line, err := lineage.Trace(ctx, l.State, l.History, func(s catalog.State) bool { return s.SnapshotID == id })
	if err != nil {
		return catalog.State{}, err
	}
	if oldest := line.Nodes[len(line.Nodes)-1].State; oldest.SnapshotID == id {
		return oldest, nil
	}
	found, err := l.History.Find(ctx, id, l.State)
	if err != nil {
		return catalog.State{}, err
	}
	if !found.OK {
		return catalog.State{}, fmt.Errorf("snapshot %d of %s was not found from %s: %s", id, t.Config.Key, refWords(l.Head.Reference.Ref()), found.Why)
	}
	return found.State, nil
}

// parseAt reads --at; "" is what otherwise would be read. Digits alone are a snapshot id.
func parseAt(text string, otherwise catalog.Ref) (at, error) {
	if text == "" {
		return at{ref: otherwise}, nil
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id >= 0 {
		return at{ref: otherwise, snapshot: &id}, nil
	}
	ref, err := catalog.ParseRef(text)
	if err != nil {
		return at{}, fmt.Errorf("--at %s: %w", text, err)
	}
	return at{ref: ref}, nil
}
