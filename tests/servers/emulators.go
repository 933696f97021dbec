// SPDX-License-Identifier: Apache-2.0

//go:build unix

package servers

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rpk-nessie/rpk-nessie/tests/ports"
)

const (
	azuriteVersion     = "3.35.0"
	gcsEmulatorVersion = "2026.7.19"
)

// Azurite is an emulator of Azure Blob Storage.
type Azurite struct {
	*Process
	ConnectionString string
}

// StartAzurite starts an emulator for one test.
func StartAzurite(t testing.TB) *Azurite {
	t.Helper()
	node := installed(t, "node", "nodejs")
	program := fetched(t, "azurite-"+azuriteVersion, "node_modules", "azurite", "dist", "src", "blob", "main.js")
	folder := newFolder(t, "azurite")
	address := ports.Free(t)
	const (
		account = "devstoreaccount1" // Azurite's own, with its well-known key
		key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	)
	a := &Azurite{ConnectionString: fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=http://%s/%[1]s;", account, key, address)}
	a.Process = &Process{name: "Azurite", folder: folder, ready: listens(address), command: []string{
		node, program, "--blobHost", "127.0.0.1", "--blobPort", portOf(address), "--location", filepath.Join(folder, "data"), "--skipApiVersionCheck", "--disableTelemetry",
	}}
	a.start(t)
	return a
}

// GCS is an emulator of Google Cloud Storage with one bucket. It knows no conditions on writes.
type GCS struct {
	*Process
	Host string // for STORAGE_EMULATOR_HOST
}

// StartGCS starts an emulator for one test.
func StartGCS(t testing.TB, bucket string) *GCS {
	t.Helper()
	program := fetched(t, "gcs-emulator-"+gcsEmulatorVersion, "bin", "gcp-storage-emulator")
	folder := newFolder(t, "gcs")
	address := ports.Free(t)
	g := &GCS{Host: "http://" + address}
	g.Process = &Process{name: "the emulator of Google Cloud Storage", folder: folder, ready: listens(address), command: []string{
		program, "start", "--host", "127.0.0.1", "--port", portOf(address), "--default-bucket", bucket, "--in-memory",
	}}
	g.start(t)
	return g
}
