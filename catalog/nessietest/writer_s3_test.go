// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/apache/iceberg-go/io/gocloud/s3" // a Writer's file IO for s3://
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriterWritesToS3(t *testing.T) {
	store := s3mem.New()
	require.NoError(t, store.CreateBucket("bucket"))
	s3 := httptest.NewServer(gofakes3.New(store).Server())
	t.Cleanup(s3.Close)
	local := newTestWriter(t)
	w, err := NewWriter(t.Context(), WriterConfig{
		Catalog: local.cfg.Catalog, Warehouse: "s3://bucket/warehouse/",
		Storage: map[string]string{
			"s3.endpoint": s3.URL, "s3.region": "us-east-1", "s3.access-key-id": "id", "s3.secret-access-key": "secret",
		},
	})
	require.NoError(t, err)
	_, err = w.Create(t.Context(), orders, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	written, err := w.Append(t.Context(), orders, row(2, "b"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(written.Content.MetadataLocation, "s3://bucket/warehouse/shop/orders_"))
	assert.Equal(t, []int64{1, 2}, ids(t, w, orders))
}
