// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	gcsHome  = "https://storage.googleapis.com"
	gcsScope = "https://www.googleapis.com/auth/devstorage.read_only"
	// gcsEmulator is the variable with which Google's own clients are pointed to an emulator.
	gcsEmulator = "STORAGE_EMULATOR_HOST"
)

// GCSConfig says how Google Cloud Storage is asked, and as whom. Without credentials Google's application default ones are
// taken, and none at an Endpoint.
type GCSConfig struct {
	// Endpoint is the URL of an emulator or a private endpoint; "" is Google, or what STORAGE_EMULATOR_HOST says.
	Endpoint string
	// CredentialsType is the kind of the given credentials, one of GCSCredentials; "" is a service account's key.
	CredentialsType string
	// CredentialsFile is a file with credentials in JSON, CredentialsJSON the same as text. At most one is set.
	CredentialsFile, CredentialsJSON string
}

// GCSCredentials are the types of credentials.
var GCSCredentials = []string{
	string(google.ServiceAccount), string(google.AuthorizedUser), string(google.ExternalAccount),
	string(google.ExternalAccountAuthorizedUser), string(google.ImpersonatedServiceAccount),
}

func (c GCSConfig) check() error {
	if c.CredentialsType != "" && !slices.Contains(GCSCredentials, c.CredentialsType) {
		return errors.New("storage.gcp_cloud_storage.credentials_type: not one of " + strings.Join(GCSCredentials, ", "))
	}
	if c.CredentialsFile != "" && c.CredentialsJSON != "" {
		return errors.New("storage.gcp_cloud_storage: credentials_file and credentials_json exclude each other")
	}
	return checkEndpoint("storage.gcp_cloud_storage.endpoint", c.Endpoint)
}

// checkEndpoint refuses what is no URL of a server, and does not show it.
func checkEndpoint(field, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return errors.New(field + ": not an http or https URL")
	case u.User != nil:
		return errors.New(field + ": user information does not belong there")
	}
	return nil
}

// gcsStore holds the objects of any bucket, behind Google's JSON API.
type gcsStore struct {
	cfg      GCSConfig
	timeout  time.Duration
	attempts int
	retried  func(location string, err error)

	mu        sync.Mutex
	client    *http.Client
	transport *http.Transport
	base      string // without a slash at its end
}

func (s *gcsStore) connect() (*http.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	s.base = strings.TrimRight(s.cfg.Endpoint, "/")
	if emulator := os.Getenv(gcsEmulator); s.base == "" && emulator != "" {
		if !strings.Contains(emulator, "://") {
			emulator = "http://" + emulator
		}
		s.base = strings.TrimRight(emulator, "/")
	}
	tokens, err := s.tokens()
	if err != nil {
		return nil, fmt.Errorf("configuring Google Cloud Storage: %w", err)
	}
	if s.base == "" {
		s.base = gcsHome
	}
	s.transport = storeTransport(s.timeout)
	var authorized http.RoundTripper = s.transport
	if tokens != nil {
		authorized = &oauth2.Transport{Source: tokens, Base: s.transport}
	}
	s.client = retrying(authorized, s.attempts, func(err error) { s.retried("", fmt.Errorf("asking Google Cloud Storage at %s: %w", s.base, err)) })
	return s.client, nil
}

// tokens are those of the given credentials, or Google's default ones; nil is none.
func (s *gcsStore) tokens() (oauth2.TokenSource, error) {
	ctx := context.Background() // tokens are fetched later too
	text := []byte(s.cfg.CredentialsJSON)
	if s.cfg.CredentialsFile != "" {
		var err error
		if text, err = os.ReadFile(s.cfg.CredentialsFile); err != nil {
			return nil, fmt.Errorf("reading credentials_file: %w", err)
		}
	}
	switch {
	case len(text) > 0:
		kind := google.ServiceAccount
		if s.cfg.CredentialsType != "" {
			kind = google.CredentialsType(s.cfg.CredentialsType)
		}
		found, err := google.CredentialsFromJSONWithType(ctx, text, kind, gcsScope)
		if err != nil {
			return nil, fmt.Errorf("the credentials are none of type %s", kind) // what can't be parsed could be shown
		}
		return found.TokenSource, nil
	case s.base != "":
		return nil, nil
	}
	found, err := google.FindDefaultCredentials(ctx, gcsScope)
	if err != nil {
		return nil, fmt.Errorf("finding Google's default credentials (or set credentials_file or credentials_json): %w", err)
	}
	return found.TokenSource, nil
}

func (s *gcsStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}

func (s *gcsStore) object(location string) string {
	_, bucket, key := splitS3(location)
	return "/storage/v1/b/" + url.PathEscape(bucket) + "/o/" + url.PathEscape(key)
}

// ask makes one request whose answer is a success. The caller closes its body.
func (s *gcsStore) ask(ctx context.Context, path, rng string) (*http.Response, error) {
	client, err := s.connect()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	if rng != "" {
		req.Header.Set("Range", rng)
	}
	// Otherwise objects that are stored compressed come decompressed, and ranges would be of something else.
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		return nil, s.explain(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return nil, s.refused(resp.StatusCode, string(text))
	}
	return resp, nil
}

func (s *gcsStore) get(ctx context.Context, location, rng string) (part, error) {
	resp, err := s.ask(ctx, s.object(location)+"?alt=media", rng) //nolint:bodyclose // the part's owner does
	if err != nil {
		return part{}, err
	}
	p := part{body: resp.Body}
	p.modified, _ = http.ParseTime(resp.Header.Get("Last-Modified"))
	return p.as(&resp.ContentLength, resp.Header.Get("Content-Range"))
}

// gcsObject is an object's resource, as far as it is needed.
type gcsObject struct {
	Name    string    `json:"name"`
	Size    string    `json:"size"`
	Updated time.Time `json:"updated"`
}

func (s *gcsStore) stat(ctx context.Context, location string) (fs.FileInfo, error) {
	var found gcsObject
	if err := s.describe(ctx, s.object(location)+"?fields=name,size,updated", &found); err != nil {
		return nil, err
	}
	size, err := strconv.ParseInt(found.Size, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading the size of an object: %w", err)
	}
	return objectInfo{name: baseName(location), size: size, modified: found.Updated}, nil
}

func (s *gcsStore) list(ctx context.Context, prefix string) ([]string, error) {
	base, bucket, key := splitS3(prefix)
	query := url.Values{"prefix": {key}, "fields": {"items(name),nextPageToken"}}
	var locations []string
	for {
		var page struct {
			Items []gcsObject `json:"items"`
			Next  string      `json:"nextPageToken"`
		}
		if err := s.describe(ctx, "/storage/v1/b/"+url.PathEscape(bucket)+"/o?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		for _, found := range page.Items {
			locations = append(locations, base+found.Name)
		}
		if page.Next == "" {
			return locations, nil
		}
		query.Set("pageToken", page.Next)
	}
}

func (s *gcsStore) describe(ctx context.Context, path string, into any) error {
	resp, err := s.ask(ctx, path, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return s.explain(fmt.Errorf("reading the answer: %w", err))
	}
	return nil
}

// refused makes an answer that is no success an error that callers can decide on. A bucket that does not exist is
// deliberately no fs.ErrNotExist, as for S3.
func (s *gcsStore) refused(status int, text string) error {
	says := s.explain(fmt.Errorf("status %d: %s", status, presentable(text, &http.Request{})))
	switch {
	case status == http.StatusNotFound && strings.Contains(text, "bucket does not exist"):
		return says
	case status == http.StatusNotFound:
		return fs.ErrNotExist
	case status == http.StatusRequestedRangeNotSatisfiable:
		return errRange
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("%w by %w", fs.ErrPermission, says)
	}
	return says
}

func (s *gcsStore) explain(err error) error {
	if sending, ok := errors.AsType[*url.Error](err); ok {
		err = sending.Err
	}
	return fmt.Errorf("asking Google Cloud Storage at %s: %w", s.base, err)
}
