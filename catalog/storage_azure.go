// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// AzureConfig says which storage account of Azure is asked, and with what.
type AzureConfig struct {
	// Account is the storage account; not used with ConnectionString.
	Account string
	// Container is the only container that may be read; "" is any.
	Container string
	// Endpoint is the URL of the account's blob service; "" is Azure's.
	Endpoint string
	// One of these gives access. Without them the environment, a workload's or the machine's identity is asked for tokens, and
	// an endpoint that is no https gets none.
	SASToken, ConnectionString, AccessKey string
}

func (c AzureConfig) check() error {
	const field = "storage.azure_blob_storage"
	if c == (AzureConfig{}) {
		return nil
	}
	ways := 0
	for _, way := range []string{c.SASToken, c.ConnectionString, c.AccessKey} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New(field + ": storage_sas_token, storage_connection_string and storage_access_key exclude each other")
	case c.ConnectionString != "" && (c.Account != "" || c.Endpoint != ""):
		return errors.New(field + ": storage_connection_string says account and endpoint by itself")
	case ways == 1 && c.ConnectionString == "" && c.Account == "":
		return errors.New(field + ": storage_account is needed")
	}
	return checkEndpoint(field+".endpoint", c.Endpoint)
}

// azureStore holds the blobs of the containers of one account.
type azureStore struct {
	cfg      AzureConfig
	timeout  time.Duration
	attempts int
	retried  func(location string, err error)

	mu        sync.Mutex
	client    *service.Client
	transport *http.Transport
}

// splitAzure takes abfss://container@account.dfs.core.windows.net/key apart.
func splitAzure(location string) (base, name, account, key string) {
	scheme, rest, _ := strings.Cut(location, "://")
	authority, key, _ := strings.Cut(rest, "/")
	name, host, _ := strings.Cut(authority, "@")
	account, _, _ = strings.Cut(host, ".")
	return scheme + "://" + authority + "/", name, account, key
}

func (s *azureStore) connect() (*service.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	if s.transport == nil {
		s.transport = storeTransport(s.timeout)
	}
	opts := &service.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: retrying(s.transport, s.attempts, func(err error) { s.retried("", fmt.Errorf("asking Azure Blob Storage of %s: %w", s.account(), err)) }),
		Retry:     policy.RetryOptions{MaxRetries: -1}, // by the transport
	}}
	client, err := s.open(opts)
	if err != nil {
		return nil, fmt.Errorf("configuring Azure Blob Storage: %w", err)
	}
	s.client = client
	return client, nil
}

func (s *azureStore) open(opts *service.ClientOptions) (*service.Client, error) {
	address := s.cfg.Endpoint
	if address == "" {
		address = "https://" + s.cfg.Account + ".blob.core.windows.net"
	}
	switch {
	case s.cfg.ConnectionString != "":
		client, err := service.NewClientFromConnectionString(s.cfg.ConnectionString, opts)
		if err != nil {
			return nil, errors.New("storage_connection_string: not a connection string with an account and a key or a signature")
		}
		return client, nil
	case s.cfg.Account == "":
		return nil, errors.New("set storage.azure_blob_storage: storage_account and a credential, or storage_connection_string")
	case s.cfg.AccessKey != "":
		shared, err := service.NewSharedKeyCredential(s.cfg.Account, s.cfg.AccessKey)
		if err != nil {
			return nil, errors.New("storage_access_key: not a key in base64")
		}
		return service.NewClientWithSharedKeyCredential(address, shared, opts)
	case s.cfg.SASToken != "":
		return service.NewClientWithNoCredential(strings.TrimRight(address, "/")+"/?"+strings.TrimPrefix(s.cfg.SASToken, "?"), opts)
	}
	if strings.HasPrefix(address, "http:") { // an emulator: tokens are not sent in plain text
		return service.NewClientWithNoCredential(address, opts)
	}
	// The requests for tokens are made again by the identity's own rules.
	identity, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: s.transport}},
	})
	if err != nil {
		return nil, err
	}
	return service.NewClient(address, identity, opts)
}

func (s *azureStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}

// account is the configured account's name, "" where it is not known.
func (s *azureStore) account() string {
	for setting := range strings.SplitSeq(s.cfg.ConnectionString, ";") {
		if name, value, _ := strings.Cut(setting, "="); strings.EqualFold(name, "AccountName") {
			return value
		}
	}
	return s.cfg.Account
}

// container is the one that a location names, if it may be read: the credentials are for one account, and a table must not
// lead them elsewhere.
func (s *azureStore) container(location string) (*container.Client, string, error) {
	_, name, account, key := splitAzure(location)
	switch {
	case account != "" && s.account() != "" && account != s.account():
		return nil, "", fmt.Errorf("%w: it lies in account %s, and storage.azure_blob_storage is for %s", ErrLocationRefused, account, s.account())
	case s.cfg.Container != "" && name != s.cfg.Container:
		return nil, "", fmt.Errorf("%w: only container %s may be read", ErrLocationRefused, s.cfg.Container)
	}
	client, err := s.connect()
	if err != nil {
		return nil, "", err
	}
	return client.NewContainerClient(name), key, nil
}

func (s *azureStore) get(ctx context.Context, location, rng string) (part, error) {
	in, key, err := s.container(location)
	if err != nil {
		return part{}, err
	}
	object := in.NewBlobClient(key)
	asked, err := s.rangeOf(ctx, object, rng)
	if err != nil {
		return part{}, err
	}
	out, err := object.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: asked})
	if err != nil {
		return part{}, s.explain(err)
	}
	p := part{body: out.Body}
	if out.LastModified != nil {
		p.modified = *out.LastModified
	}
	contentRange := ""
	if out.ContentRange != nil {
		contentRange = *out.ContentRange
	}
	return p.as(out.ContentLength, contentRange)
}

// rangeOf reads the value of a Range header. Azure knows none that counts from the end: those need the size first.
func (s *azureStore) rangeOf(ctx context.Context, object *blob.Client, rng string) (blob.HTTPRange, error) {
	first, last, _ := strings.Cut(strings.TrimPrefix(rng, "bytes="), "-")
	end, err := strconv.ParseInt(last, 10, 64)
	switch {
	case rng == "":
		return blob.HTTPRange{}, nil
	case err != nil:
		return blob.HTTPRange{}, fmt.Errorf("reading the range %q: %w", rng, err)
	case first == "":
		props, err := object.GetProperties(ctx, nil)
		if err != nil {
			return blob.HTTPRange{}, s.explain(err)
		}
		size := *props.ContentLength
		if size == 0 {
			return blob.HTTPRange{}, errRange
		}
		return blob.HTTPRange{Offset: max(size-end, 0), Count: min(size, end)}, nil
	}
	off, err := strconv.ParseInt(first, 10, 64)
	return blob.HTTPRange{Offset: off, Count: end - off + 1}, err
}

func (s *azureStore) stat(ctx context.Context, location string) (fs.FileInfo, error) {
	in, key, err := s.container(location)
	if err != nil {
		return nil, err
	}
	props, err := in.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return nil, s.explain(err)
	}
	info := objectInfo{name: baseName(location), size: *props.ContentLength}
	if props.LastModified != nil {
		info.modified = *props.LastModified
	}
	return info, nil
}

func (s *azureStore) list(ctx context.Context, prefix string) ([]string, error) {
	in, key, err := s.container(prefix)
	if err != nil {
		return nil, err
	}
	base, _, _, _ := splitAzure(prefix)
	pages := in.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &key})
	var locations []string
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.explain(err)
		}
		for _, found := range page.Segment.BlobItems {
			locations = append(locations, base+*found.Name)
		}
	}
	return locations, nil
}

// storeError tells on one line what the SDK spreads over many, as where it found no identity.
type storeError struct {
	where string
	err   error
}

func (e *storeError) Error() string {
	return e.where + ": " + strings.Join(strings.Fields(e.err.Error()), " ")
}
func (e *storeError) Unwrap() error { return e.err }

// explain is as for S3. The SDK's own text shows the request's URL, of which a signature is a part: it is left out.
func (s *azureStore) explain(err error) error {
	var (
		answer  *azcore.ResponseError
		sending *url.Error
	)
	where := "asking Azure Blob Storage of " + s.account()
	if errors.As(err, &sending) {
		return fmt.Errorf("%s: %w", where, sending.Err)
	}
	if !errors.As(err, &answer) {
		return &storeError{where: where, err: err}
	}
	says := fmt.Errorf("%s: status %d %s", where, answer.StatusCode, answer.ErrorCode)
	switch {
	case bloberror.HasCode(err, bloberror.ContainerNotFound):
		return says
	case answer.StatusCode == http.StatusNotFound:
		return fs.ErrNotExist
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return errRange
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w by %w", fs.ErrPermission, says)
	}
	return says
}
