package redact_test

import (
	"strings"
	"testing"

	"sparkbridge/sinks/redact"
)

// In these texts § stands before and behind what must be masked, and nothing else may be.
var credentials = map[string]string{
	"JDBC query":           `java.sql.SQLException: Cannot connect to jdbc:mysql://db.internal:3306/shop?user=etl&password=§Tr0ub4dor&3§&useSSL=true`,
	"JDBC query last":      `org.postgresql.util.PSQLException: FATAL: jdbc:postgresql://db:5432/shop?user=etl@corp&password=§pässwört§`,
	"JDBC semicolons":      `com.microsoft.sqlserver.jdbc.SQLServerException: jdbc:sqlserver://h:1433;databaseName=shop;user=etl@h;password=§p@ss,w0rd§;encrypt=true`,
	"JDBC braces":          `url jdbc:sqlserver://h:1433;password=§{a;b c}§;encrypt=true`,
	"JDBC oracle":          `jdbc:oracle:thin:scott/§tiger§@//db:1521/orcl: ORA-01017`,
	"JDBC oracle quoted":   `jdbc:oracle:thin:scott/"§ti@ger§"@db:1521:orcl`,
	"JDBC snowflake":       `jdbc:snowflake://acme.snowflakecomputing.com/?user=u&private_key_pwd=§s3cr3t§&db=x`,
	"URL":                  `Failed to fetch https://etl:§s3cr3t@x§@repo.example.org:8443/artifacts?x=a@b`,
	"URL with a token":     `git clone https://§0123abcd§@git.example.org/x.git`,
	"URL against rules":    `redis://:§pa/s#s§@cache:6379/0`,
	"mongo":                `mongodb+srv://etl:§s3,cret§@h1:27017,h2:27017/db?authSource=admin`,
	"S3 URL":               `s3n://§AKIAIOSFODNN7EXAMPLE§:§wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY§@bucket/path`,
	"SAS":                  `https://acct.blob.core.windows.net/c/f?sv=2022-11-02&se=2026-01-01T00%3A00%3A00Z&sr=c&sp=rl&sig=§Zm9v%2Bx%3D§&spr=https, 403`,
	"SAS in options":       `fs.azure.sas.c.acct.blob.core.windows.net=?sv=2020-08-04&sig=§abc%2F123%3D§`,
	"account key":          `Invalid configuration fs.azure.account.key.acct.dfs.core.windows.net=§Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==§ detected`,
	"client secret":        `fs.azure.account.oauth2.client.secret.acct.dfs.core.windows.net: §abc~8Q.x§`,
	"connection string":    `DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=§abc+/d==§;EndpointSuffix=core.windows.net`,
	"event hubs":           `Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=§q1w2e3=§;EntityPath=orders`,
	"AWS keys":             `fs.s3a.access.key=§AKIAIOSFODNN7EXAMPLE§, fs.s3a.secret.key=§wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY§`,
	"AWS id and secret":    `credentials §AKIAIOSFODNN7EXAMPLE§/§wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY§ are refused`,
	"AWS environment":      "AWS_SECRET_ACCESS_KEY=§wJalrXUtnFEMI§\nAWS_SESSION_TOKEN=§FwoGZX§\nAWS_REGION=eu-west-1",
	"AWS session token":    `with token §IQoJb3JpZ2luX2VjEJr//////////wEaCXVzLWVhc3QtMSJHMEUCIQD3§ expired`,
	"presigned":            `GET https://b.s3.amazonaws.com/k?X-Amz-Credential=§AKIAIOSFODNN7EXAMPLE%2F20260101§&X-Amz-Security-Token=§abc%3D§&X-Amz-Signature=§0a1b§`,
	"AWS header":           `Authorization: AWS4-HMAC-SHA256 Credential=§AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/s3/aws4_request§, SignedHeaders=host;range, Signature=§fe5f80§`,
	"bearer":               `HTTP 401, sent Authorization: Bearer §eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJldGwifQ.c2ln§ to host`,
	"bearer alone":         `refused: bearer §dG9rZW4x§.`,
	"basic":                `curl -H 'Authorization: Basic §ZXRsOnMzY3JldA==§' http://h`,
	"basic alone":          `sent Basic §dXNlcjpwYXNz§ and got 403`,
	"header map":           `{Authorization=[Bearer §abc.def-1§], Accept=[*/*]}`,
	"JWT":                  `token §eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJldGwifQ.c2ln§`,
	"databricks":           `PAT §dapi0123456789abcdef0123456789abcdef§ is expired`,
	"PEM":                  "key -----BEGIN RSA PRIVATE KEY-----§\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/\nabc=\n§-----END RSA PRIVATE KEY----- x",
	"PEM in one line":      `ssl.keystore.key=-----BEGIN PRIVATE KEY-----§ MIIEow abc= §-----END PRIVATE KEY-----`,
	"PEM without an end":   "privateKey: \"-----BEGIN PRIVATE KEY-----§\nMIIEow+/\nabc§",
	"PEM without a start":  "(…)§MIIEow+/\nabc\n§-----END PRIVATE KEY-----",
	"jaas":                 `sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="etl" password="§s3 cr;et§";`,
	"jaas in JSON":         `{"kafka.sasl.jaas.config":"x required username=\"etl\" password=\"§s3cr3t§\";","a":"b"}`,
	"jaas single quotes":   `PlainLoginModule required username='u' password='§p"w§';`,
	"oauth jaas":           `OAuthBearerLoginModule required clientId="x" clientSecret="§y§" scope="z";`,
	"keystore":             `ssl.truststore.location=/etc/t.jks, ssl.truststore.password = §changeit§, ssl.key.password=§changeme§`,
	"Scala map":            `CaseInsensitiveMap(url -> jdbc:x:y, password -> §s3cr3t§, user -> etl)`,
	"Java map":             `{user=etl, password=§s3cr3t§, url=x}`,
	"Java map, last":       `Properties {user=etl, password=§s3cr3t§}`,
	"Python":               `{'user': 'etl', 'password': '§it\'s§', 'n': 1}`,
	"Python item":          `os.environ['DB_PASSWORD'] = '§swordfish§'`,
	"JSON":                 `{"client_secret" : "§a\"b§", "grant_type":"x"}`,
	"YAML":                 "user: etl\npassword: §swordfish§\napi_key: §abc123§\n",
	"printed into a text":  `{"conf":"{\"password\":\"§s3cr3t§\",\"user\":\"etl\"}"}`,
	"printed line break":   `log: \nAKIA\npassword=§s3cr3t1§`,
	"case":                 `PASSWORD=§x1§ Pwd=§y1§; apiKey=§z1§`,
	"empty, then another":  `password= token=§abc§`,
	"schema registry":      `Map(schema.registry.basic.auth.user.info -> §sr:s3cr3t§, bearer.auth.token -> §abc§, schema.registry.url -> http://sr)`,
	"options in SQL":       `CREATE TABLE t OPTIONS(url "jdbc:mysql://h:3306/x", user="etl", password="§abcde§")`,
	"always encrypted":     `jdbc:sqlserver://h;keyVaultProviderClientId=a;keyVaultProviderClientKey=§b~c§;KeyStoreSecret=§d§;x=y`,
	"service account":      `{"private_key_id": "0a1b", "private_key": "§-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n§", "client_email": "x@y"}`,
	"spark option":         `spark.authenticate.secret=§a1§`,
	"hadoop token":         `WebHDFS ?delegation=x&token=§HAAEZXRs§&op=OPEN`,
	"Databricks placement": `option("dbtable", "x").option(password="§s3cr3t§")`,
}

func TestCredentialsAreMasked(t *testing.T) {
	for name, marked := range credentials {
		want := maskMarked(marked)
		got := redact.Text(strings.ReplaceAll(marked, "§", ""))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("%s: masked twice it is\n%s", name, again)
		}
	}
}

// maskMarked masks what stands between two §.
func maskMarked(text string) string {
	parts := strings.Split(text, "§")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = redact.Mask
	}
	return strings.Join(parts, "")
}

// What looks like a credential and is none stays.
func TestTheRestStays(t *testing.T) {
	for _, text := range []string{
		`Access denied for user 'etl'@'10.0.0.5' (using password: YES)`,
		`org.apache.hadoop.security.token.SecretManager$InvalidToken: token (HDFS_DELEGATION_TOKEN token 12 for etl) can't be found in cache`,
		`org.apache.hadoop.security.token.SecretManager$InvalidToken: org.apache.hadoop.ipc.RemoteException: gone`,
		`Wrong password: please try again`,
		`ExpiredToken: The provided token has expired. (Service: Amazon S3; Status Code: 400; Error Code: ExpiredToken; Request ID: 4442587FB7D0A2F9)`,
		"\tat org.apache.kafka.common.security.oauthbearer.internals.secured.Token.verify(Token.java:85)\n\tat com.x.Secret.password(Password.scala:12)",
		`abfss://container@account.dfs.core.windows.net/path: 403`,
		`spark://CoarseGrainedScheduler@10.1.1.1:4040, akka.tcp://sparkDriver@h:7077/user`,
		`hdfs://namenode:8020/user/etl@corp/x, jdbc:mysql://h1:3306,h2:3307/db?user=a@b, http://[::1]:80/a@b`,
		`jdbc:oracle:thin:@//db:1521/orcl, jdbc:sqlserver://h:1433;user=a@b`,
		`arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf`,
		`sasl.oauthbearer.token.endpoint.url=https://login/token, ssl.keystore.location=/etc/password.jks`,
		`fs.s3a.aws.credentials.provider=com.amazonaws.auth.DefaultAWSCredentialsProviderChain`,
		`spark.redaction: password=*********(redacted), "token":"*********(redacted)"`,
		`struct<user:string,password:string,token:binary>, root |-- password: string (nullable = true)`,
		`Project [id#1, password#2, token#3 AS secret#4]`,
		`Filter (isnotnull(key#3) AND (key#3 = 5)), max_tokens=4096, tokens: 12`,
		`hasToken=true, secret=null, passwordAuthentication=false, token=, password=;user=x`,
		`Bearer authentication is required; Basic authentication failed; bearer token is missing`,
		`[PARSE_SYNTAX_ERROR] Syntax error at or near 'password'. extraneous token: ';'`,
		`KafkaV2[Subscribe[orders]], {"orders":{"0":123,"1":456}}, RateStreamV2[rowsPerSecond=5, rampUpTimeSeconds=0]`,
		`-----BEGIN CERTIFICATE-----` + "\nMIIB\n" + `-----END CERTIFICATE-----`,
		`sha1 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12, uuid 5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11`,
		`AKIA is a prefix, ASIA too, and eyJ; dapi, basic and bearer: of good news`,
		`secret:8080 http://token:8080/x sc://password:15002`,
		"…[12 bytes cut]…",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("this has no credential:\n%s\n%s", text, got)
		}
	}
}
