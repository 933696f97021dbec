// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// toCheckpoint is the durable form of a place.
func toCheckpoint(conf *Config, at place) *cache.Checkpoint {
	c := &cache.Checkpoint{
		Branch:    conf.Ref.String(),
		Namespace: conf.Namespace,
		Table:     conf.Key[len(conf.Key)-1],
		Version:   cache.Version,
		Step:      at.Ordinal,
		Last:      toRef(at.State, at.Commit, at.CommitTimeMs),
	}
	if s := at.Step; s != nil {
		c.Position = &cache.Position{
			To:         toRef(s.After, s.Commit.Hash, s.Commit.TimeMs),
			Kind:       string(s.Kind),
			FoundBy:    s.FoundBy,
			PlanDigest: s.Digest,
			Attempt:    s.Attempt,
			Row:        s.Row,
		}
		if s.Before != nil {
			from := toRef(*s.Before, at.Commit, at.CommitTimeMs)
			c.Position.From = &from
		} else if at.Ordinal == 0 {
			c.Stage = cache.StageFirst
		}
	}
	return c
}

// fromCheckpoint is the place that a checkpoint holds.
func fromCheckpoint(c *cache.Checkpoint) (place, error) {
	last, err := fromRef(c.Last)
	if err != nil {
		return place{}, err
	}
	at := place{
		Started:      true,
		Place:        lineage.Place{State: last, Commit: c.Last.CommitHash, Names: c.Legacy()},
		CommitTimeMs: c.Last.CommitTimeMs,
		Ordinal:      c.Step,
	}
	p := c.Position
	if p == nil {
		return at, nil
	}
	after, err := fromRef(p.To)
	if err != nil {
		return place{}, err
	}
	at.Step = &step{
		Step:    lineage.Step{Kind: lineage.Kind(p.Kind), After: after, FoundBy: p.FoundBy},
		Ordinal: c.Step + 1,
		Commit:  catalog.TableCommit{Hash: p.To.CommitHash, TimeMs: p.To.CommitTimeMs},
		Digest:  p.PlanDigest,
		Attempt: p.Attempt,
		Row:     p.Row,
		Begun:   p.PlanDigest != "",
	}
	if p.From != nil {
		before, err := fromRef(*p.From)
		if err != nil {
			return place{}, err
		}
		at.Step.Before = &before
	}
	return at, nil
}

func toRef(s catalog.State, commit string, commitTimeMs int64) cache.StateRef {
	ref := cache.StateRef{
		SnapshotID:       cache.FormatSnapshotID(s.SnapshotID),
		Sequence:         s.Sequence,
		TableUUID:        s.TableUUID,
		ContentID:        s.ContentID,
		CommitHash:       commit,
		CommitTimeMs:     commitTimeMs,
		MetadataLocation: s.MetadataLocation,
		ManifestList:     s.ManifestList,
		Manifests:        s.Manifests,
		SchemaID:         s.SchemaID,
		Operation:        s.Operation,
		TimestampMs:      s.TimestampMs,
		FormatVersion:    s.FormatVersion,
	}
	if s.Records >= 0 {
		ref.Records = &s.Records
	}
	if s.ParentID != nil {
		ref.ParentID = cache.FormatSnapshotID(*s.ParentID)
	}
	return ref
}

func fromRef(ref cache.StateRef) (catalog.State, error) {
	id, err := cache.ParseSnapshotID(ref.SnapshotID)
	if err != nil {
		return catalog.State{}, fmt.Errorf("reading the checkpoint's state: %w", err)
	}
	s := catalog.State{
		TableUUID:        ref.TableUUID,
		ContentID:        ref.ContentID,
		SnapshotID:       id,
		Sequence:         ref.Sequence,
		TimestampMs:      ref.TimestampMs,
		ManifestList:     ref.ManifestList,
		Manifests:        ref.Manifests,
		SchemaID:         ref.SchemaID,
		Operation:        ref.Operation,
		Records:          -1,
		MetadataLocation: ref.MetadataLocation,
		FormatVersion:    ref.FormatVersion,
	}
	if ref.Records != nil {
		s.Records = *ref.Records
	}
	if ref.ParentID != "" {
		parent, err := cache.ParseSnapshotID(ref.ParentID)
		if err != nil {
			return catalog.State{}, fmt.Errorf("reading the checkpoint's state: %w", err)
		}
		s.ParentID = &parent
	}
	return s, nil
}
