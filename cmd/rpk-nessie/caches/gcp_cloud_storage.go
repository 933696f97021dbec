// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redpanda-data/benthos/v4/public/service"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	gcsFieldCredentials = "credentials_json"

	gcsScope = "https://www.googleapis.com/auth/devstorage.read_write"
	// gcsEmulator is the variable with which Google's own clients are pointed to an emulator.
	gcsEmulator = "STORAGE_EMULATOR_HOST"

	gcsTimeout = 30 * time.Second // of one attempt
)

func init() { register("gcp_cloud_storage", gcsSpec(), newGCS) }

func gcsSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Beta().
		Categories("Services", "GCP").
		Summary("Keeps each item as an object in a bucket of Google Cloud Storage.").
		Description(objectDescription+"\n\nGoogle takes about one write a second to one object and answers more with 429, which is tried again for up to 30 s. The variable `"+gcsEmulator+"` points the cache to an emulator, without credentials.").
		Fields(
			service.NewStringField(fieldBucket).
				Description("The bucket. It has to exist."),
			service.NewStringField(fieldContentType).
				Description("The content type of the objects. Without this field Google's default is used.").
				Optional().
				Advanced(),
			service.NewStringField(gcsFieldCredentials).
				Description("A service account's key, as JSON. Without this field Google's application default credentials are used: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, `gcloud`'s, or those of the machine.").
				Optional().
				Secret(),
		).
		Example("Checkpoints", "The place of an input in a bucket.", `
cache_resources:
  - label: progress
    gcp_cloud_storage:
      bucket: pipelines
`)
}

// gcsStore is a bucket behind Google's JSON API.
type gcsStore struct {
	client      *http.Client
	base        string // without / at its end
	bucket      string
	contentType string
	retries     retries
}

// newGCS does no I/O but reading credentials.
func newGCS(conf *service.ParsedConfig) (*gcsStore, error) {
	s := &gcsStore{base: "https://storage.googleapis.com", retries: retries{*backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(30*time.Second))}}
	var err error
	if s.bucket, err = conf.FieldString(fieldBucket); err != nil {
		return nil, err
	}
	if s.contentType, err = optional(conf, fieldContentType); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	s.client = &http.Client{Transport: transport, Timeout: gcsTimeout}
	if emulator := os.Getenv(gcsEmulator); emulator != "" {
		if !strings.Contains(emulator, "://") {
			emulator = "http://" + emulator
		}
		s.base = strings.TrimRight(emulator, "/")
		return s, nil
	}
	key, err := optional(conf, gcsFieldCredentials)
	if err != nil {
		return nil, err
	}
	tokens, err := gcsTokens(key)
	if err != nil {
		return nil, err
	}
	s.client.Transport = &oauth2.Transport{Source: tokens, Base: transport}
	return s, nil
}

// gcsTokens are those of a key, or the default ones.
func gcsTokens(key string) (oauth2.TokenSource, error) {
	ctx := context.Background() // tokens are fetched later too
	if key == "" {
		found, err := google.FindDefaultCredentials(ctx, gcsScope)
		if err != nil {
			return nil, fmt.Errorf("finding Google's default credentials (or set %s): %w", gcsFieldCredentials, err)
		}
		return found.TokenSource, nil
	}
	account, err := google.JWTConfigFromJSON([]byte(key), gcsScope)
	if err != nil {
		return nil, fmt.Errorf("%s: not a service account's key", gcsFieldCredentials)
	}
	return account.TokenSource(ctx), nil
}

// optional is a text field, or "" where it is not set.
func optional(conf *service.ParsedConfig, path ...string) (string, error) {
	if !conf.Contains(path...) {
		return "", nil
	}
	return conf.FieldString(path...)
}

func (s *gcsStore) object(name string) string {
	return s.base + "/storage/v1/b/" + url.PathEscape(s.bucket) + "/o/" + url.PathEscape(name)
}

func (s *gcsStore) get(ctx context.Context, name string) (value []byte, err error) {
	err = s.retries.do(ctx, gcsLasting, func() error {
		value, err = s.request(ctx, http.MethodGet, s.object(name)+"?alt=media", nil)
		return err
	})
	return value, err
}

func (s *gcsStore) put(ctx context.Context, name string, value []byte, ifAbsent bool) error {
	query := url.Values{"uploadType": {"media"}, "name": {name}}
	if ifAbsent {
		query.Set("ifGenerationMatch", "0")
	}
	put := func() error {
		_, err := s.request(ctx, http.MethodPost, s.base+"/upload/storage/v1/b/"+url.PathEscape(s.bucket)+"/o?"+query.Encode(), value)
		return err
	}
	if ifAbsent { // repeated it might meet what it wrote itself
		return put()
	}
	return s.retries.do(ctx, gcsLasting, put)
}

func (s *gcsStore) remove(ctx context.Context, name string) error {
	return s.retries.do(ctx, gcsLasting, func() error {
		_, err := s.request(ctx, http.MethodDelete, s.object(name), nil)
		return err
	})
}

// gcsError is an answer that is no success.
type gcsError struct {
	status  int
	message string
}

func (e *gcsError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.status, http.StatusText(e.status), e.message)
}

// gcsLasting tells what repeating does not change.
func gcsLasting(err error) bool {
	if errors.Is(err, errNoObject) || errors.Is(err, errObjectExists) {
		return true
	}
	if token := new(oauth2.RetrieveError); errors.As(err, &token) {
		return token.Response != nil && token.Response.StatusCode < http.StatusInternalServerError
	}
	answer := new(gcsError)
	return errors.As(err, &answer) && answer.status < http.StatusInternalServerError &&
		answer.status != http.StatusTooManyRequests && answer.status != http.StatusRequestTimeout
}

func (s *gcsStore) request(ctx context.Context, method, address string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if s.contentType != "" && body != nil {
		request.Header.Set("Content-Type", s.contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	return text, s.explain(response.StatusCode, text)
}

func (s *gcsStore) explain(status int, text []byte) error {
	if status/100 == 2 {
		return nil
	}
	var answer struct {
		Error struct{ Message string } `json:"error"`
	}
	message := strings.TrimSpace(string(text)) // media requests answer plain text
	if json.Unmarshal(text, &answer) == nil && answer.Error.Message != "" {
		message = answer.Error.Message
	}
	failed := &gcsError{status, message}
	switch {
	case status == http.StatusNotFound && strings.Contains(strings.ToLower(message), "bucket does not exist"):
		return fmt.Errorf("bucket %q does not exist: %w", s.bucket, failed)
	case status == http.StatusNotFound:
		return errNoObject
	case status == http.StatusPreconditionFailed:
		return errObjectExists
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return fmt.Errorf("bucket %q: the account needs the role Storage Object User: %w", s.bucket, failed)
	default:
		return failed
	}
}

func (s *gcsStore) close() error {
	s.client.CloseIdleConnections()
	return nil
}
