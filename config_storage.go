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

// Fields of storage.gcp_cloud_storage.
const (
	gcsFieldEndpoint = "endpoint"
	gcsFieldType     = "credentials_type"
	gcsFieldFile     = "credentials_file"
	gcsFieldJSON     = "credentials_json"
)

// Fields of storage.azure_blob_storage.
const (
	azureFieldAccount    = "storage_account"
	azureFieldContainer  = "container"
	azureFieldEndpoint   = "endpoint"
	azureFieldSAS        = "storage_sas_token"
	azureFieldConnection = "storage_connection_string"
	azureFieldKey        = "storage_access_key"
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
	gcs := service.NewObjectField(niFieldStorageGCS,
		service.NewStringField(gcsFieldEndpoint).Description("URL of an emulator or a private endpoint. It is asked without credentials unless some are given. The variable `STORAGE_EMULATOR_HOST` counts too.").Default("").Advanced(),
		service.NewStringEnumField(gcsFieldType, catalog.GCSCredentials...).Description("What the given credentials are.").Default(catalog.GCSCredentials[0]).Advanced(),
		service.NewStringField(gcsFieldFile).Description("A file with credentials as JSON.").Default(""),
		service.NewStringField(gcsFieldJSON).Description("Credentials as JSON, instead of the file.").Default("").Secret(),
	).Description("Files at `gs://` locations. Without credentials here Google's application default ones are used: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, `gcloud`'s, or those of the machine.").Optional()
	azure := service.NewObjectField(niFieldStorageAzure,
		service.NewStringField(azureFieldAccount).Description("The storage account. Files of another account are refused.").Default(""),
		service.NewStringField(azureFieldContainer).Description("The only container that may be read. Unset, any.").Default(""),
		service.NewStringField(azureFieldEndpoint).Description("URL of the account's blob service, where it is not Azure's own.").Default("").Advanced(),
		service.NewStringField(azureFieldSAS).Description("A shared access signature that lets blobs be read and listed.").Default("").Secret(),
		service.NewStringField(azureFieldConnection).Description("A connection string, which says account, credential and endpoint.").Default("").Secret(),
		service.NewStringField(azureFieldKey).Description("The account's key.").Default("").Secret(),
	).Description("Files at `abfs://`, `abfss://`, `wasb://` and `wasbs://` locations. At most one of signature, connection string and key. Without one, Azure's default credential is used: that of the environment (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), the workload's identity, the machine's managed identity or the Azure CLI's, the first that there is. An `endpoint` that is not `https` is then asked without any.").Optional()
	return service.NewObjectField(niFieldStorage,
		s3,
		gcs,
		azure,
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
	gcs, azure := at.section(niFieldStorageGCS), at.section(niFieldStorageAzure)
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
		GCS: catalog.GCSConfig{
			Endpoint: gcs.str(gcsFieldEndpoint), CredentialsType: gcs.str(gcsFieldType),
			CredentialsFile: gcs.str(gcsFieldFile), CredentialsJSON: gcs.str(gcsFieldJSON),
		},
		Azure: catalog.AzureConfig{
			Account: azure.str(azureFieldAccount), Container: azure.str(azureFieldContainer), Endpoint: azure.str(azureFieldEndpoint),
			SASToken: azure.str(azureFieldSAS), ConnectionString: azure.str(azureFieldConnection), AccessKey: azure.str(azureFieldKey),
		},
	}
}
