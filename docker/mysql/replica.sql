-- Run once, when the data folder is empty, by a server without network; the replication begins with the one after it.
-- incsnap's user has what a replica needs, REPLICATION SLAVE. The key: passwords go without TLS only if they are encrypted.
CHANGE REPLICATION SOURCE TO
  SOURCE_HOST = 'mysql',
  SOURCE_USER = 'incsnap',
  SOURCE_PASSWORD = 'incsnap',
  SOURCE_AUTO_POSITION = 1,
  GET_SOURCE_PUBLIC_KEY = 1,
  SOURCE_CONNECT_RETRY = 5;
