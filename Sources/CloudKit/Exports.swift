// What `import CloudKit` brings along, as on Apple's systems. `ZonekeeperConfiguration` says where the cluster is,
// which container an app uses and which account it acts for.

@_exported public import CoreLocation
@_exported public import Foundation
@_exported public import UbiquitousKeyValueStore

@_exported public import struct ServiceClient.ZonekeeperConfiguration
