// Apple's names begin with the class's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

extension NSUbiquitousKeyValueStore {
    /// Posted when values changed that this process did not set: the store is the object and has the new values already.
    public class var didChangeExternallyNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
    }
}

/// In a notification's `userInfo`: why, as an `NSNumber`.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"

/// In a notification's `userInfo`: the keys, as `[String]`; a key that reads nil was deleted.
public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"

/// Another device set or removed the keys.
public var NSUbiquitousKeyValueStoreServerChange: Int { PreferenceNotification.Reason.serverChange.rawValue }

/// The server's values came for the first time; values set before were replaced where it has others.
public var NSUbiquitousKeyValueStoreInitialSyncChange: Int { PreferenceNotification.Reason.initialSync.rawValue }

/// The keys' last writes were refused, and they are what they were before: the store is full.
public var NSUbiquitousKeyValueStoreQuotaViolationChange: Int { PreferenceNotification.Reason.quotaViolation.rawValue }

/// Another user signed in, or nobody is signed in any more: the store is another's.
public var NSUbiquitousKeyValueStoreAccountChange: Int { PreferenceNotification.Reason.accountChange.rawValue }
