// swift-format-ignore: AlwaysUseLowerCamelCase
/// The domain of the errors of CloudKit.
public let CKErrorDomain = "CKErrorDomain"

// swift-format-ignore: AlwaysUseLowerCamelCase
/// In `userInfo`: the error of each item of a batch that failed, by record ID, zone ID or subscription ID.
public let CKPartialErrorsByItemIDKey = "CKPartialErrors"
// swift-format-ignore: AlwaysUseLowerCamelCase
/// In `userInfo`: after how many seconds to try again, a number.
public let CKErrorRetryAfterKey = "CKRetryAfter"
// swift-format-ignore: AlwaysUseLowerCamelCase
/// In `userInfo` of `serverRecordChanged`: the record as this program last knew it from the server.
public let CKRecordChangedErrorAncestorRecordKey = "AncestorRecord"
// swift-format-ignore: AlwaysUseLowerCamelCase
/// In `userInfo` of `serverRecordChanged`: the record as the server has it. Merge into this one and save it.
public let CKRecordChangedErrorServerRecordKey = "ServerRecord"
// swift-format-ignore: AlwaysUseLowerCamelCase
/// In `userInfo` of `serverRecordChanged`: the record whose save failed.
public let CKRecordChangedErrorClientRecordKey = "ClientRecord"
// swift-format-ignore: AlwaysUseLowerCamelCase
/// In `userInfo` of `zoneNotFound`: whether the user reset the encrypted data, a number.
public let CKErrorUserDidResetEncryptedDataKey = "CKErrorUserDidResetEncryptedData"
