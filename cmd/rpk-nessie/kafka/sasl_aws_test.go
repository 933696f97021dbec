// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// mskUsers answers AWS_MSK_IAM as Amazon's brokers do: it signs what a client asks for once more, by AWS's own SDK and with the
// secret that it knows of the access key, and compares.
type mskUsers struct {
	region string
	known  map[string]aws.Credentials // by access key

	mu       sync.Mutex
	accepted []map[string]string // what clients sent that were let in
}

func (u *mskUsers) guard(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := r.(*kmsg.SASLHandshakeRequest)
		answer := asked.ResponseKind().(*kmsg.SASLHandshakeResponse)
		answer.SupportedMechanisms = []string{"AWS_MSK_IAM"}
		if asked.Mechanism != "AWS_MSK_IAM" {
			answer.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return answer, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := r.(*kmsg.SASLAuthenticateRequest)
		answer := asked.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if err := u.check(asked.SASLAuthBytes); err != nil {
			answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
			answer.ErrorMessage = aws.String(err.Error())
			return answer, nil, true
		}
		answer.SASLAuthBytes = []byte(`{"version":"2020_10_22","request-id":"1"}`)
		return answer, nil, true
	})
}

func (u *mskUsers) check(payload []byte) error {
	sent := map[string]string{}
	if err := json.Unmarshal(payload, &sent); err != nil {
		return err
	}
	id, scope, _ := strings.Cut(sent["x-amz-credential"], "/")
	user, ok := u.known[id]
	at, err := time.Parse("20060102T150405Z", sent["x-amz-date"])
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("nobody has the access key %s", id)
	case sent["version"] != "2020_10_22", sent["action"] != "kafka-cluster:Connect", sent["user-agent"] == "":
		return fmt.Errorf("not a request to connect: %v", sent)
	case scope != at.Format("20060102")+"/"+u.region+"/kafka-cluster/aws4_request":
		return fmt.Errorf("signed for %s", scope)
	case time.Since(at).Abs() > time.Minute:
		return fmt.Errorf("signed at %s", at)
	}
	query := url.Values{"Action": {sent["action"]}, "X-Amz-Expires": {sent["x-amz-expires"]}}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+sent["host"]+"/?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of an empty body
	signed, _, err := signer.NewSigner().PresignHTTP(context.Background(), user, request, nothing, "kafka-cluster", u.region, at)
	if err != nil {
		return err
	}
	want, err := url.Parse(signed)
	if err != nil {
		return err
	}
	for name, values := range want.Query() {
		if got := sent[strings.ToLower(name)]; got != values[0] {
			return fmt.Errorf("%s differs", name)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accepted = append(u.accepted, sent)
	return nil
}

// sts lets one role be assumed, by whoever gives the external id, and issues a key that u knows.
func (u *mskUsers) sts(t *testing.T) string {
	t.Helper()
	const answer = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by := r.Header.Get("Authorization")
		if r.FormValue("Action") != "AssumeRole" || r.FormValue("RoleArn") != "arn:aws:iam::1:role/writer" || r.FormValue("ExternalId") != "shop" ||
			!strings.Contains(by, "Credential=ann/") || !strings.Contains(by, "/eu-west-1/sts/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		role := u.known["role"]
		fmt.Fprintf(w, answer, "role", role.SecretAccessKey, role.SessionToken, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Brokers of this test are no hosts of AWS: AWS_REGION says where they would be.
func TestAuthenticationByAWS(t *testing.T) {
	users := &mskUsers{region: "eu-central-1", known: map[string]aws.Credentials{
		"ann":  {AccessKeyID: "ann", SecretAccessKey: "secret1"},
		"bob":  {AccessKeyID: "bob", SecretAccessKey: "secret2", SessionToken: "a+token/of=bob"},
		"role": {AccessKeyID: "role", SecretAccessKey: "secret3", SessionToken: "token of a role"},
	}}
	t.Setenv("AWS_REGION", users.region)
	t.Setenv("AWS_ACCESS_KEY_ID", "bob")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret2")
	t.Setenv("AWS_SESSION_TOKEN", "a+token/of=bob")
	endpoint := users.sts(t)
	c := cluster(t, "orders")
	users.guard(c)
	for name, tc := range map[string]struct{ aws, as, says string }{
		"a key":              {"{ credentials: { id: ann, secret: secret1 } }", "ann", ""},
		"a temporary key":    {"{ credentials: { id: bob, secret: secret2, token: 'a+token/of=bob' } }", "bob", ""},
		"the environment's":  {"{}", "bob", ""},
		"a role":             {"{ region: eu-west-1, endpoint: '" + endpoint + "', credentials: { id: ann, secret: secret1, role: 'arn:aws:iam::1:role/writer', role_external_id: shop } }", "role", ""},
		"a stranger":         {"{ credentials: { id: eve, secret: secret4 } }", "", "nobody has the access key eve"},
		"a wrong secret":     {"{ credentials: { id: ann, secret: secret4 } }", "", "X-Amz-Signature differs"},
		"a token is missing": {"{ credentials: { id: bob, secret: secret2 } }", "", "differs"},
		"not one's role":     {"{ region: eu-west-1, endpoint: '" + endpoint + "', credentials: { id: ann, secret: secret1, role: 'arn:aws:iam::1:role/writer' } }", "", "finding AWS's credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			users.accepted = nil
			w, err := newWriter(parse(t, outputSpec(), fields(c, "topic: orders", "sasl: [ { mechanism: AWS_MSK_IAM, aws: "+tc.aws+" } ]")), service.MockResources().Logger())
			require.NoError(t, err)
			defer func() { require.NoError(t, w.Close(context.Background())) }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err = w.Connect(ctx)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				assert.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.NoError(t, w.WriteBatch(ctx, service.MessageBatch{message("a")}))
			users.mu.Lock()
			defer users.mu.Unlock()
			require.NotEmpty(t, users.accepted)
			for _, sent := range users.accepted {
				assert.Equal(t, users.known[tc.as].SessionToken, sent["x-amz-security-token"])
				assert.Equal(t, "127.0.0.1", sent["host"])
			}
		})
	}
}

func TestAnAliasOfABrokerNeedsARegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	c := cluster(t, "orders")
	users := &mskUsers{}
	users.guard(c)
	w, err := newWriter(parse(t, outputSpec(), fields(c, "topic: orders",
		"sasl: [ { mechanism: AWS_MSK_IAM, aws: { region: eu-central-1, credentials: { id: ann, secret: secret1 } } } ]")), service.MockResources().Logger())
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close(context.Background())) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = w.Connect(ctx)
	require.ErrorContains(t, err, `cannot determine the region in "127.0.0.1", which is no host name of AWS: set the environment variable AWS_REGION`)
}
