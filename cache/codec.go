// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ValueError says that a stored value can't be used as a checkpoint. Nothing
// may be read from the table or written to the key after it.
type ValueError struct {
	Key    string // the cache key
	Reason string
	cause  error
}

// ErrNewerVersion is wrapped by the *ValueError of a value that a newer release
// wrote.
var ErrNewerVersion = errors.New("a newer release wrote it")

func (e *ValueError) Unwrap() error { return e.cause }

func (e *ValueError) Error() string {
	return fmt.Sprintf("the checkpoint under key %q can't be used: %s. "+
		"Restore the value, configure another key, or delete the key to start as on a first run", e.Key, e.Reason)
}

// value is the stored form. The fields of Last stand beside the five old ones,
// except for those two that have old names.
type value struct {
	LastAckedSnapshotID       *string `json:"lastAckedSnapshotID,omitempty"`
	LastAckedSnapshotSequence *int64  `json:"lastAckedSnapshotSequence,omitempty"`
	Branch                    string  `json:"branch"`
	Namespace                 string  `json:"namespace"`
	Table                     string  `json:"table"`
	Version                   int     `json:"version"`
	Stage                     Stage   `json:"stage,omitempty"`
	StateRef
	Step     int64     `json:"step"`
	Position *Position `json:"position,omitempty"`
	Owner    *Owner    `json:"owner,omitempty"`
	Checksum string    `json:"checksum,omitempty"`
}

var legacyFields = []string{"branch", "lastAckedSnapshotID", "lastAckedSnapshotSequence", "namespace", "table"}

// Encode returns the stored form of c, in the current version. Decode of it
// gives an equal checkpoint (Version apart). It fails on what Decode would
// refuse. Strings have to be valid UTF-8.
func Encode(c *Checkpoint) ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("encoding checkpoint: %w", err)
	}
	v := value{
		Branch: c.Branch, Namespace: c.Namespace, Table: c.Table,
		Version: Version, Stage: c.Stage, StateRef: c.Last,
		Step: c.Step, Position: c.Position, Owner: c.Owner,
	}
	v.SnapshotID, v.Sequence = "", 0
	if c.Stage == StageComplete {
		v.LastAckedSnapshotID, v.LastAckedSnapshotSequence = &c.Last.SnapshotID, &c.Last.Sequence
	}
	unsigned, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding checkpoint: %w", err)
	}
	fields, err := parseObject(unsigned)
	if err != nil {
		return nil, fmt.Errorf("encoding checkpoint: %w", err)
	}
	if v.Checksum, err = checksum(fields); err != nil {
		return nil, fmt.Errorf("encoding checkpoint: %w", err)
	}
	signed, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding checkpoint: %w", err)
	}
	return signed, nil
}

// Decode reads a stored value. Every error is a *ValueError that names key. A
// value is a checkpoint only if it is whole: an empty or torn one is never
// read as "nothing stored".
func Decode(key string, stored []byte) (*Checkpoint, error) {
	c, err := decode(stored)
	if err != nil {
		return nil, &ValueError{Key: key, Reason: err.Error(), cause: err}
	}
	return c, nil
}

func decode(stored []byte) (*Checkpoint, error) {
	if len(bytes.TrimSpace(stored)) == 0 {
		return nil, errors.New("it is empty, as a cache leaves it that stopped while writing")
	}
	fields, err := parseObject(stored)
	if err != nil {
		return nil, fmt.Errorf("it is no whole JSON object: %w", err)
	}
	if err := verify(fields); err != nil {
		return nil, err
	}
	var v value
	if err := json.Unmarshal(stored, &v); err != nil {
		return nil, fmt.Errorf("a field has the wrong type: %w", err)
	}
	if v.Stage == StageComplete && (v.LastAckedSnapshotID == nil || v.LastAckedSnapshotSequence == nil) {
		return nil, errors.New("it lacks lastAckedSnapshotID or lastAckedSnapshotSequence")
	}
	c := &Checkpoint{
		Last: v.StateRef, Branch: v.Branch, Namespace: v.Namespace, Table: v.Table,
		Version: v.Version, Stage: v.Stage, Step: v.Step, Position: v.Position, Owner: v.Owner,
	}
	if v.LastAckedSnapshotID != nil && v.LastAckedSnapshotSequence != nil {
		c.Last.SnapshotID, c.Last.Sequence = *v.LastAckedSnapshotID, *v.LastAckedSnapshotSequence
	}
	return c, c.validate()
}

// verify checks that fields are those of a version that is known, unchanged
// since they were written. Only the old form has no checksum, so it has to
// consist of exactly its five fields: a damaged newer value must not pass.
func verify(fields map[string]any) error {
	version, ok := fields["version"]
	if !ok {
		return verifyLegacy(fields)
	}
	number, ok := version.(json.Number)
	if !ok {
		return errors.New("its version is no number")
	}
	switch n, err := number.Int64(); {
	case err != nil || n < 1:
		return fmt.Errorf("its version %s is unknown", number)
	case n > Version:
		return fmt.Errorf("it has version %d, and this build reads versions up to %d: %w", n, Version, ErrNewerVersion)
	}
	want, err := checksum(fields)
	if err != nil {
		return err
	}
	switch got := fields["checksum"]; got {
	case want:
		return nil
	case nil:
		return errors.New("it has a version but no checksum")
	default:
		return fmt.Errorf("its checksum is %v, but its content adds up to %s: it was damaged or edited", got, want)
	}
}

func verifyLegacy(fields map[string]any) error {
	for _, name := range legacyFields {
		if fields[name] == nil {
			return fmt.Errorf("it has no version, and lacks %s of the old form", name)
		}
	}
	var unknown []string
	for name := range fields {
		if !slices.Contains(legacyFields, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("it has no version, but fields that the old form does not have: %s", strings.Join(unknown, ", "))
	}
	return nil
}

// checksum is the SHA-256 of the canonical JSON of fields without "checksum":
// keys sorted, no white space, numbers as they were written. So a value that
// a tool or a cache formatted anew is still valid.
func checksum(fields map[string]any) (string, error) {
	content := make(map[string]any, len(fields))
	for name, field := range fields {
		if name != "checksum" {
			content[name] = field
		}
	}
	canonical, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("writing canonical JSON: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func parseObject(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("it is null")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return fields, nil
}

func (c *Checkpoint) validate() error {
	switch c.Stage {
	case StageComplete, StageClaimed:
	case StageFirst:
		if c.Position == nil {
			return errors.New("its first step is in progress, but there is no position")
		}
	default:
		return fmt.Errorf("its stage %q is unknown", c.Stage)
	}
	if c.Branch == "" || c.Namespace == "" || c.Table == "" {
		return errors.New("branch, namespace or table is empty")
	}
	if c.Step < 0 {
		return fmt.Errorf("its step ordinal %d is negative", c.Step)
	}
	if err := c.Last.validate(); err != nil {
		return fmt.Errorf("last state: %w", err)
	}
	return c.Position.validate()
}

func (p *Position) validate() error {
	if p == nil {
		return nil
	}
	if p.Kind == "" {
		return errors.New("position: the kind of the step is missing")
	}
	if p.Row < 0 || p.Attempt < 0 {
		return fmt.Errorf("position: row %d or attempt %d is negative", p.Row, p.Attempt)
	}
	if p.From != nil {
		if err := p.From.validate(); err != nil {
			return fmt.Errorf("position: from: %w", err)
		}
	}
	if err := p.To.validate(); err != nil {
		return fmt.Errorf("position: to: %w", err)
	}
	return p.Next.validate()
}

func (s *StateRef) validate() error {
	for _, id := range []string{s.SnapshotID, s.ParentID} {
		if _, err := ParseSnapshotID(id); err != nil {
			return err
		}
	}
	if s.Sequence < 0 {
		return fmt.Errorf("sequence number %d is negative", s.Sequence)
	}
	if s.Records != nil && *s.Records < 0 {
		return fmt.Errorf("record count %d is negative", *s.Records)
	}
	return nil
}
