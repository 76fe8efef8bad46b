public import Foundation

// The server does not have sharing yet: everything here fails with `serverRejectedRequest`, which says so.
extension CKContainer {
    private static var refusal: CKError { .notBuilt("sharing") }

    /// What a share's URL leads to.
    public func shareMetadata(for url: URL) async throws -> CKShare.Metadata { throw Self.refusal }

    /// What a share's URL leads to.
    @preconcurrency
    public func fetchShareMetadata(
        with url: URL, completionHandler: @escaping @Sendable (CKShare.Metadata?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareMetadata(for: url) }
    }

    /// What several shares' URLs lead to.
    public func shareMetadatas(for urls: [URL]) async throws -> [URL: Result<CKShare.Metadata, any Error>] {
        throw Self.refusal
    }

    /// What several shares' URLs lead to.
    @preconcurrency
    public func fetchShareMetadatas(
        for urls: [URL],
        completionHandler: @escaping @Sendable (Result<[URL: Result<CKShare.Metadata, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareMetadatas(for: urls) }
    }

    /// Accepts a share.
    @discardableResult
    public func accept(_ metadata: CKShare.Metadata) async throws -> CKShare { throw Self.refusal }

    /// Accepts a share.
    @preconcurrency
    public func accept(
        _ metadata: CKShare.Metadata, completionHandler: @escaping @Sendable (CKShare?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.accept(metadata) }
    }

    /// Accepts several shares.
    @discardableResult
    public func accept(
        _ metadatas: [CKShare.Metadata]
    ) async throws -> [CKShare.Metadata: Result<CKShare, any Error>] {
        throw Self.refusal
    }

    /// Accepts several shares.
    @preconcurrency
    public func accept(
        _ metadatas: [CKShare.Metadata],
        completionHandler:
            @escaping @Sendable (Result<[CKShare.Metadata: Result<CKShare, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.accept(metadatas) }
    }

    // MARK: Participants

    /// A user as a participant, by address.
    public func shareParticipant(forEmailAddress emailAddress: String) async throws -> CKShare.Participant {
        throw Self.refusal
    }

    /// A user as a participant, by telephone number.
    public func shareParticipant(forPhoneNumber phoneNumber: String) async throws -> CKShare.Participant {
        throw Self.refusal
    }

    /// A user as a participant, by record ID.
    public func shareParticipant(forUserRecordID userRecordID: CKRecord.ID) async throws -> CKShare.Participant {
        throw Self.refusal
    }

    /// A user as a participant, by address.
    @preconcurrency
    public func fetchShareParticipant(
        withEmailAddress emailAddress: String,
        completionHandler: @escaping @Sendable (CKShare.Participant?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareParticipant(forEmailAddress: emailAddress) }
    }

    /// A user as a participant, by telephone number.
    @preconcurrency
    public func fetchShareParticipant(
        withPhoneNumber phoneNumber: String,
        completionHandler: @escaping @Sendable (CKShare.Participant?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareParticipant(forPhoneNumber: phoneNumber) }
    }

    /// A user as a participant, by record ID.
    @preconcurrency
    public func fetchShareParticipant(
        withUserRecordID userRecordID: CKRecord.ID,
        completionHandler: @escaping @Sendable (CKShare.Participant?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareParticipant(forUserRecordID: userRecordID) }
    }

    /// Users as participants, by address.
    public func shareParticipants(
        forEmailAddresses emailAddresses: [String]
    ) async throws -> [String: Result<CKShare.Participant, any Error>] {
        throw Self.refusal
    }

    /// Users as participants, by telephone number.
    public func shareParticipants(
        forPhoneNumbers phoneNumbers: [String]
    ) async throws -> [String: Result<CKShare.Participant, any Error>] {
        throw Self.refusal
    }

    /// Users as participants, by record ID.
    public func shareParticipants(
        forUserRecordIDs userRecordIDs: [CKRecord.ID]
    ) async throws -> [CKRecord.ID: Result<CKShare.Participant, any Error>] {
        throw Self.refusal
    }

    /// Users as participants, by address.
    @preconcurrency
    public func fetchShareParticipants(
        forEmailAddresses emails: [String],
        completionHandler:
            @escaping @Sendable (Result<[String: Result<CKShare.Participant, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareParticipants(forEmailAddresses: emails) }
    }

    /// Users as participants, by telephone number.
    @preconcurrency
    public func fetchShareParticipants(
        forPhoneNumbers phoneNumbers: [String],
        completionHandler:
            @escaping @Sendable (Result<[String: Result<CKShare.Participant, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareParticipants(forPhoneNumbers: phoneNumbers) }
    }

    /// Users as participants, by record ID.
    @preconcurrency
    public func fetchShareParticipants(
        forUserRecordIDs userRecordIDs: [CKRecord.ID],
        completionHandler:
            @escaping @Sendable (Result<[CKRecord.ID: Result<CKShare.Participant, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.shareParticipants(forUserRecordIDs: userRecordIDs) }
    }
}

/// Fetches what a share's URL leads to. The server does not have sharing yet: it ends with `serverRejectedRequest`.
open class CKFetchShareMetadataOperation: CKOperation, @unchecked Sendable {
    /// The shares' URLs.
    @CKGuarded public var shareURLs: [URL]? = nil
    /// Whether the shared record comes with it.
    @CKGuarded public var shouldFetchRootRecord = false
    /// The fields of that record; nil for all.
    @CKGuarded public var rootRecordDesiredKeys: [CKRecord.FieldKey]? = nil
    /// Called for each URL.
    @preconcurrency @CKGuarded
    public var perShareMetadataResultBlock: (@Sendable (URL, Result<CKShare.Metadata, any Error>) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var fetchShareMetadataResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called for each URL; the older form of `perShareMetadataResultBlock`.
    @preconcurrency @CKGuarded
    public var perShareMetadataBlock: (@Sendable (URL, CKShare.Metadata?, (any Error)?) -> Void)? = nil
    /// Called once, at the end; the older form of `fetchShareMetadataResultBlock`.
    @preconcurrency @CKGuarded public var fetchShareMetadataCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation for these URLs.
    public convenience init(shareURLs: [URL]) {
        self.init()
        self.shareURLs = shareURLs
    }

    override func execute() async {
        await refuse(.notBuilt("sharing")) { [self] in
            fetchShareMetadataResultBlock?(.failure($0))
            fetchShareMetadataCompletionBlock?($0)
        }
    }
}

/// Accepts shares. The server does not have sharing yet: it ends with `serverRejectedRequest`.
open class CKAcceptSharesOperation: CKOperation, @unchecked Sendable {
    /// The shares.
    @CKGuarded public var shareMetadatas: [CKShare.Metadata]? = nil
    /// Called for each share.
    @preconcurrency @CKGuarded
    public var perShareResultBlock: (@Sendable (CKShare.Metadata, Result<CKShare, any Error>) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded public var acceptSharesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called for each share; the older form of `perShareResultBlock`.
    @preconcurrency @CKGuarded
    public var perShareCompletionBlock: (@Sendable (CKShare.Metadata, CKShare?, (any Error)?) -> Void)? = nil
    /// Called once, at the end; the older form of `acceptSharesResultBlock`.
    @preconcurrency @CKGuarded public var acceptSharesCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation that accepts these shares.
    public convenience init(shareMetadatas: [CKShare.Metadata]) {
        self.init()
        self.shareMetadatas = shareMetadatas
    }

    override func execute() async {
        await refuse(.notBuilt("sharing")) { [self] in
            acceptSharesResultBlock?(.failure($0))
            acceptSharesCompletionBlock?($0)
        }
    }
}

/// Fetches users as participants of shares. The server does not have sharing yet: it ends with `serverRejectedRequest`.
open class CKFetchShareParticipantsOperation: CKOperation, @unchecked Sendable {
    /// Who is looked for.
    @CKGuarded public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo]? = nil
    /// Called for each.
    @preconcurrency @CKGuarded
    public var perShareParticipantResultBlock:
        (@Sendable (CKUserIdentity.LookupInfo, Result<CKShare.Participant, any Error>) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var fetchShareParticipantsResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called for each who is found; the older form of `perShareParticipantResultBlock`.
    @preconcurrency @CKGuarded
    public var shareParticipantFetchedBlock: (@Sendable (CKShare.Participant) -> Void)? = nil
    /// Called once, at the end; the older form of `fetchShareParticipantsResultBlock`.
    @preconcurrency @CKGuarded
    public var fetchShareParticipantsCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation that looks for these users.
    public convenience init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo]) {
        self.init()
        self.userIdentityLookupInfos = userIdentityLookupInfos
    }

    override func execute() async {
        await refuse(.notBuilt("sharing")) { [self] in
            fetchShareParticipantsResultBlock?(.failure($0))
            fetchShareParticipantsCompletionBlock?($0)
        }
    }
}
