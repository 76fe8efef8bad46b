import Foundation
import RecordModel

extension DatabaseService {
    /// The users who may be found by addresses or IDs, in that order. Users who cannot be found are left out.
    /// - Throws: `notAuthenticated` if no user is signed in.
    func discover(_ infos: [CKUserIdentity.LookupInfo]) async throws(CKError) -> [CKUserIdentity] {
        var found: [CKUserIdentity] = []
        for first in stride(from: 0, to: infos.count, by: Limits.operationsMax) {
            try checkCancellation()
            let part = infos[first...].prefix(Limits.operationsMax)
            let answer = try await read("users/discover") { writer in
                writer.member("lookupInfos", each: part) { $0.lookupInfo($1) }
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

// The calls with completion handlers, and the operations, that Apple deprecated in favour of shares' participants.
extension CKContainer {
    /// The user with an address who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipant(withEmailAddress:)")
    @preconcurrency
    public func discoverUserIdentity(
        withEmailAddress email: String,
        completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        discover(CKUserIdentity.LookupInfo(emailAddress: email), completionHandler)
    }

    /// The user with a telephone number who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipant(withPhoneNumber:)")
    @preconcurrency
    public func discoverUserIdentity(
        withPhoneNumber phoneNumber: String,
        completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        discover(CKUserIdentity.LookupInfo(phoneNumber: phoneNumber), completionHandler)
    }

    /// The user of a record who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipant(withUserRecordID:)")
    @preconcurrency
    public func discoverUserIdentity(
        withUserRecordID userRecordID: CKRecord.ID,
        completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        discover(CKUserIdentity.LookupInfo(userRecordID: userRecordID), completionHandler)
    }

    private func discover(
        _ info: CKUserIdentity.LookupInfo, _ handler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ result in
            handler((try? result.get()) ?? nil, result.failure)
        }) {
            try await self.publicCloudDatabase.service.discover([info]).first
        }
    }

    /// Those of the users with these addresses who may be found.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipants(forEmailAddresses:)")
    @preconcurrency
    public func discoverUserIdentities(
        forEmailAddresses emails: [String],
        completionHandler: @escaping @Sendable (Result<[String: CKUserIdentity], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.userIdentities(forEmailAddresses: emails) }
    }

    /// Those of the users with these telephone numbers who may be found.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipants(forPhoneNumbers:)")
    @preconcurrency
    public func discoverUserIdentities(
        forPhoneNumbers phoneNumbers: [String],
        completionHandler: @escaping @Sendable (Result<[String: CKUserIdentity], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.userIdentities(forPhoneNumbers: phoneNumbers) }
    }

    /// Those of the users of these records who may be found.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipants(forUserRecordIDs:)")
    @preconcurrency
    public func discoverUserIdentities(
        forUserRecordIDs userRecordIDs: [CKRecord.ID],
        completionHandler: @escaping @Sendable (Result<[CKRecord.ID: CKUserIdentity], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.userIdentities(forUserRecordIDs: userRecordIDs) }
    }

    /// The users in the address book who may be found: none, as there is no address book here.
    @available(*, deprecated, message: "no longer supported")
    @preconcurrency
    public func discoverAllIdentities(
        completionHandler: @escaping @Sendable ([CKUserIdentity]?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.allUserIdentitiesFromContacts() }
    }

    /// See `applicationPermissionStatus(for:)`; `couldNotComplete` with the error where the server cannot be asked.
    @available(*, deprecated, message: "no longer supported")
    @preconcurrency
    public func status(
        forApplicationPermission applicationPermission: CKContainer.ApplicationPermissions,
        completionHandler: @escaping CKContainer.ApplicationPermissionBlock
    ) {
        Callbacks.complete({ result in
            completionHandler((try? result.get()) ?? .couldNotComplete, result.failure)
        }) {
            try await self.applicationPermissionStatus(for: applicationPermission)
        }
    }

    /// See `requestApplicationPermission(_:)`; `couldNotComplete` with the error where the server cannot be asked.
    @available(*, deprecated, message: "no longer supported")
    @preconcurrency
    public func requestApplicationPermission(
        _ applicationPermission: CKContainer.ApplicationPermissions,
        completionHandler: @escaping CKContainer.ApplicationPermissionBlock
    ) {
        status(forApplicationPermission: applicationPermission, completionHandler: completionHandler)
    }
}

/// Finds users who may be found, by addresses or record IDs. Apple deprecated it.
@available(*, deprecated, message: "no longer supported; use CKFetchShareParticipantsOperation")
open class CKDiscoverUserIdentitiesOperation: CKOperation, @unchecked Sendable {
    /// Who is looked for.
    @CKGuarded public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo] = []
    /// Called for each user who is found.
    @preconcurrency @CKGuarded
    public var userIdentityDiscoveredBlock: (@Sendable (CKUserIdentity, CKUserIdentity.LookupInfo) -> Void)? = nil
    /// Called once, at the end. Users who cannot be found are no failure of the operation.
    @preconcurrency @CKGuarded
    public var discoverUserIdentitiesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `discoverUserIdentitiesResultBlock`.
    @preconcurrency @CKGuarded
    public var discoverUserIdentitiesCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation that looks for these users.
    public convenience init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo]) {
        self.init()
        self.userIdentityLookupInfos = userIdentityLookupInfos
    }

    override func execute() async {
        let result = await outcome { () async throws(CKError) -> [CKUserIdentity] in
            try checkCancellation()
            return try await users.discover(userIdentityLookupInfos)
        }
        await Callbacks.run { [self] in
            for identity in (try? result.get()) ?? [] {
                if let info = identity.lookupInfo { userIdentityDiscoveredBlock?(identity, info) }
            }
            discoverUserIdentitiesResultBlock?(result.map { _ in () })
            discoverUserIdentitiesCompletionBlock?(result.failure)
        }
    }
}

/// Finds the users in the address book. There is none here, so it finds no user. Apple deprecated it.
@available(*, deprecated, message: "no longer supported")
open class CKDiscoverAllUserIdentitiesOperation: CKOperation, @unchecked Sendable {
    /// Called for each user who is found: not here.
    @preconcurrency @CKGuarded public var userIdentityDiscoveredBlock: (@Sendable (CKUserIdentity) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var discoverAllUserIdentitiesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `discoverAllUserIdentitiesResultBlock`.
    @preconcurrency @CKGuarded
    public var discoverAllUserIdentitiesCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    override func execute() async {
        let result = await outcome { () async throws(CKError) in
            try checkCancellation()
            _ = try await users.caller()
        }
        await Callbacks.run { [self] in
            discoverAllUserIdentitiesResultBlock?(result)
            discoverAllUserIdentitiesCompletionBlock?(result.failure)
        }
    }
}

extension CKOperation {
    /// The public database of the operation's container, with the time that is left.
    var users: DatabaseService { begun(home.publicCloudDatabase) }
}
