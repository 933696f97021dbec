// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	azFieldAccount          = "storage_account"
	azFieldAccessKey        = "storage_access_key"
	azFieldConnectionString = "storage_connection_string"
	azFieldSASToken         = "storage_sas_token"
	azFieldContainer        = "container"
)

func init() { register("azure_blob_storage", azureSpec(), newAzure) }

func azureSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Beta().
		Categories("Services", "Azure").
		Summary("Keeps each item as a blob in a container of Azure Blob Storage.").
		Description(objectDescription+"\n\nEither `"+azFieldConnectionString+"` is needed, or `"+azFieldAccount+"`. Without `"+azFieldAccessKey+"` and `"+azFieldSASToken+"` the account is asked "+
			"with Azure's default credential: that of the environment (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), the workload's identity, the machine's managed identity or the Azure CLI's, the first that there is.").
		Fields(
			service.NewStringField(azFieldAccount).
				Description("The storage account. It is not used with `"+azFieldConnectionString+"`.").
				Default(""),
			service.NewStringField(azFieldAccessKey).
				Description("The account's key.").
				Default("").
				Secret(),
			service.NewStringField(azFieldConnectionString).
				Description("A connection string, which says account, key or shared access signature, and endpoint.").
				Default("").
				Secret(),
			service.NewStringField(azFieldSASToken).
				Description("A shared access signature that lets blobs be read, created, written and deleted.").
				Default("").
				Secret(),
			service.NewStringField(azFieldContainer).
				Description("The container. It has to exist."),
		).
		LintRule(`root = if this.storage_connection_string.or("") == "" && this.storage_account.or("") == "" { "storage_connection_string or storage_account is needed" }`).
		Example("Checkpoints", "The place of an input in a container.", `
cache_resources:
  - label: progress
    azure_blob_storage:
      storage_account: shop
      storage_access_key: ${AZURE_STORAGE_KEY}
      container: pipelines
`)
}

// azureStore is a container of blobs.
type azureStore struct {
	client    *container.Client
	transport *http.Transport
	name      string
}

// newAzure does no I/O.
func newAzure(conf *service.ParsedConfig) (*azureStore, error) {
	var text [5]string
	for i, name := range []string{azFieldContainer, azFieldConnectionString, azFieldAccount, azFieldAccessKey, azFieldSASToken} {
		var err error
		if text[i], err = conf.FieldString(name); err != nil {
			return nil, err
		}
	}
	s := &azureStore{name: text[0], transport: http.DefaultTransport.(*http.Transport).Clone()}
	if s.name == "" {
		return nil, fmt.Errorf("%s is needed", azFieldContainer)
	}
	var err error
	s.client, err = s.open(text[1], text[2], text[3], strings.TrimPrefix(text[4], "?"))
	return s, err
}

func (s *azureStore) open(connectionString, account, key, sas string) (*container.Client, error) {
	opts := &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: s.transport}}}
	address := "https://" + account + ".blob.core.windows.net/" + s.name
	switch {
	case connectionString != "":
		client, err := container.NewClientFromConnectionString(connectionString, s.name, opts)
		if err != nil {
			return nil, fmt.Errorf("%s: not a connection string with an account and a key or a signature", azFieldConnectionString)
		}
		return client, nil
	case account == "":
		return nil, fmt.Errorf("%s or %s is needed", azFieldConnectionString, azFieldAccount)
	case key != "":
		shared, err := container.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, fmt.Errorf("%s: not a key in base64", azFieldAccessKey)
		}
		return container.NewClientWithSharedKeyCredential(address, shared, opts)
	case sas != "":
		return container.NewClientWithNoCredential(address+"?"+sas, opts)
	}
	identity, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: opts.ClientOptions})
	if err != nil {
		return nil, fmt.Errorf("looking for Azure's default credential: %w", err)
	}
	return container.NewClient(address, identity, opts)
}

func (s *azureStore) get(ctx context.Context, name string) ([]byte, error) {
	response, err := s.client.NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, s.explain(err)
	}
	value, err := io.ReadAll(response.Body)
	return value, errors.Join(err, response.Body.Close())
}

func (s *azureStore) put(ctx context.Context, name string, value []byte, ifAbsent bool) error {
	opts := &blockblob.UploadOptions{}
	if ifAbsent {
		every := azcore.ETagAny
		opts.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &every}}
	}
	_, err := s.client.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(value)), opts)
	return s.explain(err)
}

func (s *azureStore) remove(ctx context.Context, name string) error {
	_, err := s.client.NewBlobClient(name).Delete(ctx, nil)
	return s.explain(err)
}

func (s *azureStore) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return errNoObject
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet):
		return errObjectExists
	case bloberror.HasCode(err, bloberror.ContainerNotFound):
		return fmt.Errorf("container %q does not exist: %w", s.name, err)
	case bloberror.HasCode(err, bloberror.AuthenticationFailed, bloberror.AuthorizationFailure, bloberror.AuthorizationPermissionMismatch):
		return fmt.Errorf("container %q: the credentials are wrong or may not read, create, write and delete blobs: %w", s.name, err)
	default:
		return err
	}
}

func (s *azureStore) close() error {
	s.transport.CloseIdleConnections()
	return nil
}
