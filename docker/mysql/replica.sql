-- Runs once, when the data folder is empty, on a temporary server without network. Replication begins when the final
-- server starts. incsnap's user has the right REPLICATION SLAVE, which a replica needs. GET_SOURCE_PUBLIC_KEY: without
-- TLS the password must be encrypted with the server's key.
CHANGE REPLICATION SOURCE TO
  SOURCE_HOST = 'mysql',
  SOURCE_USER = 'incsnap',
  SOURCE_PASSWORD = 'incsnap',
  SOURCE_AUTO_POSITION = 1,
  GET_SOURCE_PUBLIC_KEY = 1,
  SOURCE_CONNECT_RETRY = 5;
