public import Foundation

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The owner name that stands for the user who asks.
public let CKCurrentUserDefaultName = "__defaultOwner__"

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The older name of `CKCurrentUserDefaultName`.
@available(*, deprecated, renamed: "CKCurrentUserDefaultName")
public let CKOwnerDefaultName = "__defaultOwner__"

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The record name of a share that covers a whole zone.
public let CKRecordNameZoneWideShare = "cloudkit.zoneshare"

extension Notification.Name {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// Posted when another user is signed in, or none: whoever keeps the user's data reads it anew. Its object is nil.
    public static let CKAccountChanged = Notification.Name("CKAccountChangedNotification")
}
