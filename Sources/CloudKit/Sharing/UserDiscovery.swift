import Foundation
import RecordModel

extension DatabaseService {
    /// The users who may be found by addresses or IDs, in that order. Users who cannot be found are left out.
    /// - Throws: `notAuthenticated` if no user is signed in.
    func discover(_ infos: [CKUserIdentity.LookupInfo]) async throws(CKError) -> [CKUserIdentity] {
        var found: [CKUserIdentity] = []
        for first in stride(from: 0, to: infos.count, by: Limits.operationsMax) {
            try checkCancellation()
            let answer = try await read("users/discover") { writer in
                writer.key("lookupInfos")
                writer.array { writer in
                    for info in infos[first...].prefix(Limits.operationsMax) { writer.lookupInfo(info) }
                }
            }
            for json in try members("users", of: answer) { found.append(try Self.identity(json)) }
        }
        return found
    }

    /// The user who is signed in, asked now, and whether others may find the user.
    func caller() async throws(CKError) -> (identity: CKUserIdentity, isDiscoverable: Bool) {
        let answer = try await read("users/caller") { _ in }
        return (try Self.identity(answer), answer["discoverable"] == .bool(true))
    }

    private static func identity(_ json: JSONValue) throws(CKError) -> CKUserIdentity {
        guard let name = json["userRecordName"]?.string else { throw .unreadable("userRecordName") }
        var components: PersonNameComponents?
        if let names = json["nameComponents"] {
            components = PersonNameComponents()
            components?.givenName = names["givenName"]?.string
            components?.familyName = names["familyName"]?.string
        }
        return CKUserIdentity(
            userRecordID: CKRecord.ID(recordName: name),
            lookupInfo: json["lookupInfo"].flatMap(CKUserIdentityLookupInfo.init(json:)), nameComponents: components,
            hasiCloudAccount: true)
    }
}

extension JSONWriter {
    fileprivate mutating func lookupInfo(_ info: CKUserIdentity.LookupInfo) {
        object { writer in
            if let address = info.emailAddress { writer.member("emailAddress", address) }
            if let number = info.phoneNumber { writer.member("phoneNumber", number) }
            if let id = info.userRecordID { writer.member("userRecordName", id.recordName) }
        }
    }
}

extension CKUserIdentityLookupInfo {
    fileprivate convenience init?(json: JSONValue) {
        if let address = json["emailAddress"]?.string {
            self.init(emailAddress: address)
        } else if let number = json["phoneNumber"]?.string {
            self.init(phoneNumber: number)
        } else if let name = json["userRecordName"]?.string {
            self.init(userRecordID: CKRecord.ID(recordName: name))
        } else {
            return nil
        }
    }
}

// MARK: Calls

// Apple deprecated these in favour of shares' participants.
extension CKContainer {
    private var users: DatabaseService { publicCloudDatabase.service }

    /// The user with an address who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use shareParticipant(forEmailAddress:)")
    public func userIdentity(forEmailAddress email: String) async throws -> CKUserIdentity? {
        try await users.discover([CKUserIdentity.LookupInfo(emailAddress: email)]).first
    }

    /// The user with a telephone number who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use shareParticipant(forPhoneNumber:)")
    public func userIdentity(forPhoneNumber phoneNumber: String) async throws -> CKUserIdentity? {
        try await users.discover([CKUserIdentity.LookupInfo(phoneNumber: phoneNumber)]).first
    }

    /// The user of a record who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use shareParticipant(forUserRecordID:)")
    public func userIdentity(forUserRecordID userRecordID: CKRecord.ID) async throws -> CKUserIdentity? {
        try await users.discover([CKUserIdentity.LookupInfo(userRecordID: userRecordID)]).first
    }

    /// Those of the users with these addresses who may be found.
    @available(*, deprecated, message: "no longer supported; use shareParticipants(forEmailAddresses:)")
    public func userIdentities(forEmailAddresses emails: [String]) async throws -> [String: CKUserIdentity] {
        try await found(CKUserIdentity.LookupInfo.lookupInfos(withEmails: emails)) { $0.emailAddress }
    }

    /// Those of the users with these telephone numbers who may be found.
    @available(*, deprecated, message: "no longer supported; use shareParticipants(forPhoneNumbers:)")
    public func userIdentities(forPhoneNumbers phoneNumbers: [String]) async throws -> [String: CKUserIdentity] {
        try await found(CKUserIdentity.LookupInfo.lookupInfos(withPhoneNumbers: phoneNumbers)) { $0.phoneNumber }
    }

    /// Those of the users of these records who may be found.
    @available(*, deprecated, message: "no longer supported; use shareParticipants(forUserRecordIDs:)")
    public func userIdentities(
        forUserRecordIDs userRecordIDs: [CKRecord.ID]
    ) async throws -> [CKRecord.ID: CKUserIdentity] {
        try await found(CKUserIdentity.LookupInfo.lookupInfos(with: userRecordIDs)) { $0.userRecordID }
    }

    private func found<Key: Hashable>(
        _ infos: [CKUserIdentity.LookupInfo], by key: (CKUserIdentity.LookupInfo) -> Key?
    ) async throws -> [Key: CKUserIdentity] {
        let pairs = try await users.discover(infos).compactMap { identity in
            identity.lookupInfo.flatMap(key).map { ($0, identity) }
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// The users in the address book who may be found: none, as there is no address book here.
    /// - Throws: `notAuthenticated` if no user is signed in.
    @available(*, deprecated, message: "no longer supported")
    public func allUserIdentitiesFromContacts() async throws -> [CKUserIdentity] {
        _ = try await users.caller()
        return []
    }

    // MARK: Permissions

    /// What an app once had to ask the user for.
    public struct ApplicationPermissions: OptionSet, Sendable {
        /// The bits.
        public let rawValue: UInt
        /// Creates options from their bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// That other users of the app find the user.
        @available(*, deprecated, message: "no longer supported")
        public static var userDiscoverability: ApplicationPermissions { ApplicationPermissions(rawValue: 1) }
    }

    /// What the user said.
    public enum ApplicationPermissionStatus: Int, Hashable, Sendable {
        /// Nothing yet; not so here.
        case initialState = 0
        /// The server could not be asked.
        case couldNotComplete = 1
        case denied = 2
        case granted = 3
    }

    /// What gets an answer about a permission.
    public typealias ApplicationPermissionBlock =
        @Sendable (CKContainer.ApplicationPermissionStatus, (any Error)?) -> Void

    /// Whether other users find this one. That is the administrator's to decide (`zonekeeper user update`).
    /// - Throws: `notAuthenticated` if no user is signed in.
    @available(*, deprecated, message: "no longer supported")
    public func applicationPermissionStatus(
        for applicationPermission: CKContainer.ApplicationPermissions
    ) async throws -> CKContainer.ApplicationPermissionStatus {
        try await users.caller().isDiscoverable ? .granted : .denied
    }

    /// The same as `applicationPermissionStatus(for:)`: no user is asked anything.
    @available(*, deprecated, message: "no longer supported")
    public func requestApplicationPermission(
        _ applicationPermission: CKContainer.ApplicationPermissions
    ) async throws -> CKContainer.ApplicationPermissionStatus {
        try await applicationPermissionStatus(for: applicationPermission)
    }
}
