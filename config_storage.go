// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Fields of storage.aws_s3, named as in the object store components that users
// of Benthos know.
const (
	s3FieldRegion      = "region"
	s3FieldEndpoint    = "endpoint"
	s3FieldPathStyle   = "force_path_style_urls"
	s3FieldCredentials = "credentials"
	s3FieldProfile     = "profile"
	s3FieldID          = "id"
	s3FieldSecret      = "secret"
	s3FieldToken       = "token"
	s3FieldEC2Role     = "from_ec2_role"
	s3FieldRole        = "role"
	s3FieldExternalID  = "role_external_id"
)

func storageField() *service.ConfigField {
	s3 := service.NewObjectField(niFieldStorageS3,
		service.NewStringField(s3FieldRegion).Description("The region of the buckets.").Default(""),
		service.NewStringField(s3FieldEndpoint).Description("A custom endpoint of an S3 compatible store.").Default("").Example("http://localhost:9000"),
		service.NewBoolField(s3FieldPathStyle).Description("Address buckets by path instead of by host name. Needed by many S3 compatible stores.").Default(false),
		service.NewObjectField(s3FieldCredentials,
			service.NewStringField(s3FieldProfile).Description("A profile of the shared AWS configuration files.").Default(""),
			service.NewStringField(s3FieldID).Description("The access key id.").Default("").Secret(),
			service.NewStringField(s3FieldSecret).Description("The secret access key.").Default("").Secret(),
			service.NewStringField(s3FieldToken).Description("A session token, required with short-lived credentials.").Default("").Secret(),
			service.NewBoolField(s3FieldEC2Role).Description("Use the role of the EC2 instance.").Default(false),
			service.NewStringField(s3FieldRole).Description("ARN of a role to assume.").Default(""),
			service.NewStringField(s3FieldExternalID).Description("External id for assuming the role.").Default("").Secret(),
		).Description("Empty: the environment, shared files and instance roles, as the AWS tools look for them.").Optional(),
	).Description("Files at `s3://`, `s3a://` and `s3n://` locations.").Optional()
	return service.NewObjectField(niFieldStorage,
		s3,
		service.NewStringField(niFieldStorageLocal).
			Description("Only below this folder may `file:` locations be read. Unset, they are refused.").
			Default("").Example("/data/warehouse"),
	).Description("How to reach the table's files.").LintRule(valueRule(niFieldStorage)).Optional()
}

// storageOf reads the storage field's object.
func storageOf(object map[string]any) catalog.StorageConfig {
	at := section(object)
	s3 := at.section(niFieldStorageS3)
	credentials := s3.section(s3FieldCredentials)
	return catalog.StorageConfig{
		LocalRoot: at.str(niFieldStorageLocal),
		S3: catalog.S3Config{
			Region:          s3.str(s3FieldRegion),
			Endpoint:        s3.str(s3FieldEndpoint),
			ForcePathStyle:  s3.boolean(s3FieldPathStyle),
			Profile:         credentials.str(s3FieldProfile),
			AccessKeyID:     credentials.str(s3FieldID),
			SecretAccessKey: credentials.str(s3FieldSecret),
			SessionToken:    credentials.str(s3FieldToken),
			FromEC2Role:     credentials.boolean(s3FieldEC2Role),
			Role:            credentials.str(s3FieldRole),
			RoleExternalID:  credentials.str(s3FieldExternalID),
		},
	}
}
