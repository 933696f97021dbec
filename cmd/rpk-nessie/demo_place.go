// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/apache/iceberg-go/io/gocloud/s3" // writes the demo's table to s3://
	"github.com/urfave/cli/v2"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// clearTimeout bounds how long a demo removes what it made in other people's servers.
const clearTimeout = 30 * time.Second

// demoPlace says where the demo's table lies: in servers of somebody's, or with nothing set in this process.
type demoPlace struct {
	nessie, bearer string
	// warehouse is the folder, s3://… or file:///…, in which the demo makes one of its own.
	warehouse string
	endpoint  string // of an S3 compatible store
	region    string
	pathStyle bool
}

func demoFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "keep", Usage: "keep the table and the checkpoint"},
		&cli.StringFlag{Name: "nessie", Usage: "play on the Nessie server at this `URL` instead, on a branch that the demo makes and removes; needs --warehouse"},
		&cli.StringFlag{Name: "warehouse", Usage: "with --nessie: write below this `FOLDER`, s3://bucket/… or file:///…, and remove it afterwards"},
		&cli.StringFlag{Name: "bearer", Usage: "with --nessie: bearer `TOKEN`; better in the environment", EnvVars: []string{"RPK_NESSIE_BEARER"}},
		&cli.StringFlag{Name: "s3-endpoint", Usage: "with --warehouse: `URL` of an S3 compatible store; credentials come from the environment, as for the AWS tools"},
		&cli.StringFlag{Name: "s3-region", Usage: "with --warehouse: `REGION` of the bucket", EnvVars: []string{"AWS_REGION"}},
		&cli.BoolFlag{Name: "s3-path-style", Usage: "with --warehouse: address the bucket by path"},
	}
}

// demoPlaceOf reads the flags.
func demoPlaceOf(c *cli.Context) (demoPlace, error) {
	p := demoPlace{
		nessie: c.String("nessie"), bearer: c.String("bearer"), warehouse: strings.TrimRight(c.String("warehouse"), "/"),
		endpoint: c.String("s3-endpoint"), region: c.String("s3-region"), pathStyle: c.Bool("s3-path-style"),
	}
	scheme, _, _ := strings.Cut(p.warehouse, "://")
	switch {
	case p.nessie == "" && p.warehouse == "" && p.endpoint == "":
		return demoPlace{}, nil
	case p.nessie == "" || p.warehouse == "":
		return demoPlace{}, errors.New("--nessie and --warehouse go together: the table's files must lie where they can be written and read")
	case scheme != "s3" && scheme != "file":
		return demoPlace{}, fmt.Errorf("--warehouse %s: it is a folder at s3://bucket/… or file:///…", p.warehouse)
	case scheme != "s3" && p.endpoint != "":
		return demoPlace{}, errors.New("--s3-endpoint needs a --warehouse at s3://")
	}
	if p.region == "" && p.endpoint != "" {
		p.region = "us-east-1"
	}
	return p, nil
}

// venue is a place that is ready to be played on.
type venue struct {
	demoPlace
	branch string
	// clear gives back what was made.
	clear func(ctx context.Context) error
}

// inProcess starts a server here, with a warehouse in dir.
func inProcess(dir string, say *narrator) (*venue, error) {
	say.step("Start a Nessie server inside this process")
	server, err := nessietest.Start(nessietest.Options{})
	if err != nil {
		return nil, err
	}
	warehouse := filepath.Join(dir, "warehouse")
	say.line("Nessie API v2: %s/api/v2", server.URL)
	say.line("Warehouse:     %s", warehouse)
	return &venue{
		demoPlace: demoPlace{nessie: server.URL, warehouse: "file://" + warehouse},
		branch:    "main",
		clear:     func(context.Context) error { return server.Close() },
	}, nil
}

// open makes a branch and a folder that nobody else has. The branch begins without any commit, so that it holds the demo's
// table only.
func (p demoPlace) open(ctx context.Context, say *narrator, keep bool) (*venue, error) {
	s := &venue{demoPlace: p, branch: name + "-demo-" + strings.ToLower(rand.Text()[:10])}
	s.warehouse += "/" + s.branch
	say.step("Make a branch of the demo's own on %s", p.nessie)
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	config, err := client.Config(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := client.CreateReference(ctx, catalog.Branch, s.branch, catalog.Ref{Hash: config.NoAncestorHash}); err != nil {
		return nil, err
	}
	say.line("Branch:    %s", s.branch)
	say.line("Warehouse: %s", s.warehouse)
	s.clear = func(ctx context.Context) error {
		if keep {
			say.line("Kept branch %s and %s", s.branch, s.warehouse)
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
		defer cancel()
		noBranch, noFiles := s.removeBranch(ctx, say), s.removeFiles(ctx, say)
		var left []string
		if noBranch != nil {
			left = append(left, "branch "+s.branch)
		}
		if noFiles != nil {
			left = append(left, s.warehouse)
		}
		if len(left) > 0 {
			say.line("Left behind: %s", strings.Join(left, ", ")) // told even where an interrupt is what ends the demo
		}
		return errors.Join(noBranch, noFiles)
	}
	return s, nil
}

func (s *venue) client() (*catalog.Client, error) {
	cfg := catalog.ClientConfig{BaseURL: s.nessie, MaxRetries: 2}
	if s.bearer != "" {
		cfg.Token = func(context.Context) (string, error) { return s.bearer, nil }
	}
	client, err := catalog.NewClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("--nessie: %w", err)
	}
	return client, nil
}

func (s *venue) removeBranch(ctx context.Context, say *narrator) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	at, err := client.Reference(ctx, s.branch)
	if err == nil {
		err = client.DeleteReference(ctx, at)
	}
	if err != nil {
		return fmt.Errorf("removing the demo's branch %s: %w", s.branch, err)
	}
	say.line("Removed branch %s", s.branch)
	return nil
}

func (s *venue) removeFiles(ctx context.Context, say *narrator) error {
	if err := nessietest.RemoveAll(ctx, s.warehouse, s.properties()); err != nil {
		return fmt.Errorf("removing the demo's files in %s: %w", s.warehouse, err)
	}
	say.line("Removed %s", s.warehouse)
	return nil
}

// advise adds to an error of the first write how a store is reached. Nessie answered before, and errors that it answers later
// are left as they are.
func (s *venue) advise(err error) error {
	if !strings.HasPrefix(s.warehouse, "s3://") || errors.As(err, new(*catalog.Error)) || errors.As(err, new(*catalog.UnknownError)) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("writing below %s: %w\n"+
		"For a store other than AWS give its address with --s3-endpoint, and --s3-path-style where buckets are named in paths; AWS needs --s3-region.\n"+
		"Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or where else the AWS tools look", s.warehouse, err)
}

// properties are the storage for iceberg-go, which writes.
func (s *venue) properties() map[string]string {
	props := map[string]string{}
	for name, value := range map[string]string{"s3.endpoint": s.endpoint, "s3.region": s.region} {
		if value != "" {
			props[name] = value
		}
	}
	if s.endpoint == "" && !s.pathStyle {
		props["s3.force-virtual-addressing"] = "true"
	}
	return props
}

// localRoot is the warehouse's folder on this machine; "" where it is not one.
func (s *venue) localRoot() string {
	u, err := url.Parse(s.warehouse)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return u.Path
}

// storage is the same for the input, which reads: its field's lines.
func (s *venue) storage() string {
	if root := s.localRoot(); root != "" {
		return fmt.Sprintf("    local_root: %q\n", root)
	}
	lines := "    aws_s3:\n"
	if s.endpoint != "" {
		lines += fmt.Sprintf("      endpoint: %q\n", s.endpoint)
	}
	if s.region != "" {
		lines += fmt.Sprintf("      region: %q\n", s.region)
	}
	return lines + fmt.Sprintf("      force_path_style_urls: %t\n", s.pathStyle || s.endpoint != "")
}

// auth is the field that the token goes into, by the variable that holds it, so that it is shown nowhere.
func (s *venue) auth() string {
	if s.bearer == "" {
		return ""
	}
	return "  auth:\n    bearer: ${RPK_NESSIE_BEARER}\n"
}

// lookup answers the token to the variable in the pipeline.
func (s *venue) lookup(variable string) (string, bool) {
	if variable == "RPK_NESSIE_BEARER" {
		return s.bearer, true
	}
	return os.LookupEnv(variable)
}
