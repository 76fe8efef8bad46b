public import Foundation

extension CKOperation {
    // @unchecked: its parts lie behind locks; not final, as Apple's is not.
    /// How operations are run.
    public class Configuration: NSObject, NSCopying, @unchecked Sendable {
        /// The container of operations that have no database; nil for the default one.
        @CKGuarded public var container: CKContainer? = nil
        /// How urgent it is.
        @CKGuarded public var qualityOfService: QualityOfService = .default
        /// Kept and shown; there is one kind of network here.
        @CKGuarded public var allowsCellularAccess = true
        /// Whether operations on databases are kept on disk until they end: see
        /// `CKContainer.longLivedOperation(for:)`.
        @CKGuarded public var isLongLived = false
        @CKGuarded var chosenTimeout: TimeInterval? = nil
        @CKGuarded var chosenResourceTimeout: TimeInterval? = nil
        @CKGuarded var chosenFetchesFiles: Bool? = nil

        /// The longest time for all of an operation, or of a call, in seconds, from its start: what is not done by then
        /// fails with `networkFailure`. The default is a week, which is not measured.
        public var timeoutIntervalForResource: TimeInterval {
            get { chosenResourceTimeout ?? 604_800 }
            set { chosenResourceTimeout = newValue }
        }

        /// The longest time for one request, in seconds: for that long it is sent again while the cluster says to come
        /// back later, and a node is waited for. The default is 60; then the configuration's `patience` says how
        /// long it is sent again, and each attempt may take 30.
        public var timeoutIntervalForRequest: TimeInterval {
            get { chosenTimeout ?? 60 }
            set { chosenTimeout = newValue }
        }

        /// Whether fetched records come with the files of their assets, as they usually do. Without them an asset's
        /// `fileURL` is nil; its `size` and `downloadURL` are there. Not in CloudKit.
        public var fetchesAssetFiles: Bool {
            get { chosenFetchesFiles ?? true }
            set { chosenFetchesFiles = newValue }
        }

        /// The usual values.
        public override init() { super.init() }

        /// A copy of the object.
        public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

        func duplicate() -> Configuration {
            let copy = Configuration(content)
            copy.container = container
            return copy
        }
    }
}

extension CKOperation.Configuration {
    /// What archives and copies hold of it: all but the container.
    struct Content: Codable {
        var qualityOfService: Int
        var allowsCellularAccess: Bool
        var isLongLived: Bool
        var timeout: TimeInterval?
        var resourceTimeout: TimeInterval?
        var fetchesFiles: Bool?
    }

    var content: Content {
        Content(
            qualityOfService: qualityOfService.rawValue, allowsCellularAccess: allowsCellularAccess,
            isLongLived: isLongLived, timeout: chosenTimeout, resourceTimeout: chosenResourceTimeout,
            fetchesFiles: chosenFetchesFiles)
    }

    convenience init(_ content: Content) {
        self.init()
        qualityOfService = QualityOfService(rawValue: content.qualityOfService) ?? .default
        allowsCellularAccess = content.allowsCellularAccess
        isLongLived = content.isLongLived
        chosenTimeout = content.timeout
        chosenResourceTimeout = content.resourceTimeout
        chosenFetchesFiles = content.fetchesFiles
    }
}

// @unchecked: its parts lie behind locks; not final, as Apple's is not.
/// A group of operations that belong together, with a configuration for those that have none of their own.
public class CKOperationGroup: NSObject, NSSecureCoding, @unchecked Sendable {
    /// A name that no other group has.
    public let operationGroupID: String
    /// The app's name for it.
    @CKGuarded public var name: String? = nil
    /// How many of something it is about, as the app counts.
    @CKGuarded public var quantity: Int = 0
    /// The configuration of operations that have none of their own.
    @CKGuarded public var defaultConfiguration: CKOperation.Configuration! = CKOperation.Configuration()
    /// About how much will be sent.
    @CKGuarded public var expectedSendSize: TransferSize = .unknown
    /// About how much will be fetched.
    @CKGuarded public var expectedReceiveSize: TransferSize = .unknown

    /// A group without name.
    public override init() {
        operationGroupID = UUID().uuidString
        super.init()
    }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the group with its ID and its configuration, but not the configuration's container.
    public func encode(with coder: NSCoder) {
        coder.write(operationGroupID, "OperationGroupID")
        coder.write(name, "Name")
        coder.encode(Int64(quantity), forKey: "Quantity")
        coder.encode(Int64(expectedSendSize.rawValue), forKey: "ExpectedSendSize")
        coder.encode(Int64(expectedReceiveSize.rawValue), forKey: "ExpectedReceiveSize")
        coder.write(codable: defaultConfiguration?.content, "DefaultConfiguration")
    }

    /// The group of an archive; where that holds none, a new one.
    public required init(coder: NSCoder) {
        operationGroupID = coder.text("OperationGroupID") ?? UUID().uuidString
        super.init()
        name = coder.text("Name")
        quantity = coder.integer("Quantity")
        expectedSendSize = TransferSize(rawValue: coder.integer("ExpectedSendSize")) ?? .unknown
        expectedReceiveSize = TransferSize(rawValue: coder.integer("ExpectedReceiveSize")) ?? .unknown
        let content = coder.codable(CKOperation.Configuration.Content.self, "DefaultConfiguration")
        defaultConfiguration = content.map { CKOperation.Configuration($0) } ?? CKOperation.Configuration()
    }

    /// About how much.
    public enum TransferSize: Int, Hashable, Sendable {
        case unknown = 0
        case kilobytes = 1
        case megabytes = 2
        case tensOfMegabytes = 3
        case hundredsOfMegabytes = 4
        case gigabytes = 5
        case tensOfGigabytes = 6
        case hundredsOfGigabytes = 7
    }
}
