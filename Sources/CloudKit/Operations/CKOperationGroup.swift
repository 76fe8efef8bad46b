public import Foundation

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
