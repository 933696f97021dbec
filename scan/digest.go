// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// digest identifies the rows and their order. It depends on what is read, not on how it was found: file identities with
// their deletes, the schema, the projection and the query.
func (p *Plan) digest() string {
	d := digester{sha256.New()}
	d.text("rpk-nessie plan 1")
	d.number(int64(p.schema.ID))
	for _, id := range columnIDs(p.Schema) {
		d.number(int64(id))
	}
	if p.filter != nil {
		d.text("where " + p.filter.query.text)
	}
	d.number(int64(len(p.Tasks)))
	for _, t := range p.Tasks {
		d.file(t.File)
		for f := range t.Deletes.all() {
			d.text("delete")
			d.file(f)
		}
	}
	return hex.EncodeToString(d.Sum(nil))
}

type digester struct{ hash.Hash }

func (d digester) number(n int64) { _, _ = d.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func (d digester) text(s string) {
	d.number(int64(len(s)))
	_, _ = d.Write([]byte(s))
}

func (d digester) file(f File) {
	k := f.key()
	d.text(k.path)
	d.number(f.Sequence)
	d.number(int64(f.Data.SpecID()))
	d.text(f.partition)
	d.number(k.offset)
	d.text(k.referenced)
	d.number(f.Data.Count())
}
