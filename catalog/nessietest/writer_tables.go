// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// TableOptions shape a new table.
type TableOptions struct {
	Spec          *iceberg.PartitionSpec // nil: unpartitioned
	FormatVersion int                    // 1, 2 or 3; 0 is 2
	Properties    iceberg.Properties
	Form          Form
	Message       string
}

// Create makes a table in one commit, with the snapshots of its steps if there are any (CREATE TABLE … AS SELECT). The
// table's folder is new and its own even if a table had the name before.
func (w *Writer) Create(ctx context.Context, key catalog.Key, schema *iceberg.Schema, opts TableOptions, steps ...Step) (Written, error) {
	d, err := w.newTable(key, schema, opts, steps)
	if err != nil {
		return Written{}, err
	}
	if err := w.ensureNamespace(ctx, key.Namespace()); err != nil {
		return Written{}, err
	}
	return w.apply(ctx, d)
}

// Recreate drops a table and makes another under its name in one commit. Nessie keeps of the two operations a single
// Put whose content id is new: the log shows no Delete.
func (w *Writer) Recreate(ctx context.Context, key catalog.Key, schema *iceberg.Schema, opts TableOptions, steps ...Step) (Written, error) {
	d, err := w.newTable(key, schema, opts, steps)
	if err != nil {
		return Written{}, err
	}
	d.ops = []catalog.Operation{{Type: catalog.Delete, Key: key}}
	return w.apply(ctx, d)
}

// Replace is CREATE OR REPLACE TABLE: content id, table uuid, older snapshots and sequence numbers stay, and the next
// snapshot has no parent. Without steps the table is empty afterwards.
func (w *Writer) Replace(ctx context.Context, key catalog.Key, schema *iceberg.Schema, opts TableOptions, steps ...Step) (Written, error) {
	head, meta, err := w.load(ctx, key)
	if err != nil {
		return Written{}, err
	}
	replaced, err := replaceMetadata(meta, head.Content.MetadataLocation, schema, opts)
	if err != nil {
		return Written{}, fmt.Errorf("replacing table %s: %w", key, err)
	}
	return w.apply(ctx, draft{
		key: key, id: head.Content.ID, meta: replaced, previous: head.Content.MetadataLocation, known: snapshotIDs(meta),
		change: Change{Message: messageOr(opts.Message, "replace"), Steps: steps, Form: opts.Form},
	})
}

// Drop removes the table from the branch; its files stay.
func (w *Writer) Drop(ctx context.Context, key catalog.Key) (commit string, err error) {
	ref, err := w.commit(ctx, "drop", []catalog.Operation{{Type: catalog.Delete, Key: key}})
	if err != nil {
		return "", fmt.Errorf("dropping table %s: %w", key, err)
	}
	return ref.Hash, nil
}

// Rename moves the table to another key: a Delete and a Put of one content in one commit, after the commits that make
// the namespace if it is not there.
func (w *Writer) Rename(ctx context.Context, from, to catalog.Key) (commit string, err error) {
	head, err := w.cfg.Catalog.Head(ctx, catalog.Ref{Name: w.cfg.Branch}, from)
	if err != nil {
		return "", fmt.Errorf("looking up table %s: %w", from, err)
	}
	if err := w.ensureNamespace(ctx, to.Namespace()); err != nil {
		return "", err
	}
	ref, err := w.commit(ctx, "rename", []catalog.Operation{
		{Type: catalog.Delete, Key: from},
		{Type: catalog.Put, Key: to, Content: head.Content},
	})
	if err != nil {
		return "", fmt.Errorf("renaming table %s to %s: %w", from, to, err)
	}
	return ref.Hash, nil
}

// ensureNamespace makes the levels of a namespace that do not exist, as Nessie wants them before what lies in them.
func (w *Writer) ensureNamespace(ctx context.Context, namespace catalog.Key) error {
	for i := range namespace {
		level := namespace[:i+1]
		_, err := w.cfg.Catalog.Head(ctx, catalog.Ref{Name: w.cfg.Branch}, level)
		if !errors.Is(err, catalog.ErrUnknownContent) {
			if other := (&catalog.ContentTypeError{}); errors.As(err, &other) {
				continue // a namespace is no table
			}
			return err
		}
		put := catalog.Operation{Type: catalog.Put, Key: level, Content: catalog.Content{Type: catalog.ContentTypeNamespace}}
		if _, err := w.commit(ctx, "create namespace", []catalog.Operation{put}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", level, err)
		}
	}
	return nil
}

func (w *Writer) newTable(key catalog.Key, schema *iceberg.Schema, opts TableOptions, steps []Step) (draft, error) {
	props := iceberg.Properties{table.PropertyFormatVersion: strconv.Itoa(versionOr2(opts.FormatVersion))}
	maps.Copy(props, opts.Properties)
	spec := opts.Spec
	if spec == nil {
		spec = iceberg.UnpartitionedSpec
	}
	location := w.cfg.Warehouse + "/" + strings.Join(key, "/") + "_" + uuid.NewString()
	meta, err := table.NewMetadata(schema, spec, table.UnsortedSortOrder, location, props)
	if err != nil {
		return draft{}, fmt.Errorf("creating table %s: %w", key, err)
	}
	return draft{key: key, meta: meta, change: Change{Message: messageOr(opts.Message, "create"), Steps: steps, Form: opts.Form}}, nil
}

func replaceMetadata(meta table.Metadata, location string, schema *iceberg.Schema, opts TableOptions) (table.Metadata, error) {
	b, err := table.MetadataBuilderFromBase(meta, location)
	if err != nil {
		return nil, err
	}
	if meta.CurrentSnapshot() != nil {
		if err := b.RemoveSnapshotRef(table.MainBranch); err != nil {
			return nil, err
		}
	}
	if opts.FormatVersion > meta.Version() {
		if err := b.SetFormatVersion(opts.FormatVersion); err != nil {
			return nil, err
		}
	}
	if err := b.AddSchema(schema); err != nil {
		return nil, err
	}
	if err := b.SetCurrentSchemaID(-1); err != nil {
		return nil, err
	}
	spec := opts.Spec
	if spec == nil {
		spec = iceberg.UnpartitionedSpec
	}
	if err := b.AddPartitionSpec(spec, false); err != nil {
		return nil, err
	}
	if err := b.SetDefaultSpecID(-1); err != nil {
		return nil, err
	}
	if len(opts.Properties) > 0 {
		if err := b.SetProperties(opts.Properties); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

func versionOr2(version int) int {
	if version == 0 {
		return 2
	}
	return version
}

func messageOr(message, otherwise string) string {
	if message == "" {
		return otherwise
	}
	return message
}
