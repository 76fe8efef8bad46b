/// Where the cluster is, which container an app uses, and who speaks; it belongs to everything that reaches a cluster.
@_exported public import struct ServiceClient.ZonekeeperConfiguration
