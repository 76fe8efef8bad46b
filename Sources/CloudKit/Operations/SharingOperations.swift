public import Foundation

/// Fetches what a share's URL leads to. The server does not have sharing yet: it ends with `serverRejectedRequest`.
public class CKFetchShareMetadataOperation: CKOperation, @unchecked Sendable {
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

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation for these URLs.
    public convenience init(shareURLs: [URL]) {
        self.init()
        self.shareURLs = shareURLs
    }

    override func execute() async {
        let error = refusal(of: "sharing")
        await Callbacks.run { [self] in fetchShareMetadataResultBlock?(.failure(error)) }
    }
}

/// Accepts shares. The server does not have sharing yet: it ends with `serverRejectedRequest`.
public class CKAcceptSharesOperation: CKOperation, @unchecked Sendable {
    /// The shares.
    @CKGuarded public var shareMetadatas: [CKShare.Metadata]? = nil
    /// Called for each share.
    @preconcurrency @CKGuarded
    public var perShareResultBlock: (@Sendable (CKShare.Metadata, Result<CKShare, any Error>) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded public var acceptSharesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that accepts these shares.
    public convenience init(shareMetadatas: [CKShare.Metadata]) {
        self.init()
        self.shareMetadatas = shareMetadatas
    }

    override func execute() async {
        let error = refusal(of: "sharing")
        await Callbacks.run { [self] in acceptSharesResultBlock?(.failure(error)) }
    }
}

/// Fetches users as participants of shares. The server does not have sharing yet: it ends with `serverRejectedRequest`.
public class CKFetchShareParticipantsOperation: CKOperation, @unchecked Sendable {
    /// Who is looked for.
    @CKGuarded public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo]? = nil
    /// Called for each.
    @preconcurrency @CKGuarded
    public var perShareParticipantResultBlock:
        (@Sendable (CKUserIdentity.LookupInfo, Result<CKShare.Participant, any Error>) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var fetchShareParticipantsResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that looks for these users.
    public convenience init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo]) {
        self.init()
        self.userIdentityLookupInfos = userIdentityLookupInfos
    }

    override func execute() async {
        let error = refusal(of: "sharing")
        await Callbacks.run { [self] in fetchShareParticipantsResultBlock?(.failure(error)) }
    }
}
