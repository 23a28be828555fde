#include "headrace/base/file_system.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

namespace {

// How many entries the system gives before it fails; negative = it does not.
int entries_before_failure = -1;

}  // namespace

// No file system that fails in the middle of a directory is at hand, so this stands before the C library's own.
extern "C" dirent* readdir(DIR* directory) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (entries_before_failure < 0) return real(directory);
  if (entries_before_failure-- > 0) return real(directory);
  errno = EIO;
  return nullptr;
}

namespace headrace {
namespace {

class FileSystemTest : public ::testing::Test {
 protected:
  FileSystemTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headrace-files-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~FileSystemTest() override { std::filesystem::remove_all(directory_); }
  std::string Path(std::string_view name) const { return JoinPath(directory_, name); }
  void Write(const std::string& path, std::string_view content) {
    auto file = files_->Create(path).ValueOrDie();
    ASSERT_TRUE(file->Write(content.data(), static_cast<int64_t>(content.size())).ok());
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(file->Close().ok());
  }
  FileSystem* files_ = LocalFileSystem();
  std::string directory_;
};

TEST(PathTest, PartsOfPaths) {
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("/b"), "/");
  EXPECT_EQ(DirectoryOf("b"), ".");
  EXPECT_EQ(BaseNameOf("a/b"), "b");
  EXPECT_EQ(BaseNameOf("b"), "b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(AbsolutePath("/a/./b//c/.."), "/a/b/c/..");
  EXPECT_EQ(AbsolutePath("/a/b/."), "/a/b/");
  EXPECT_EQ(AbsolutePath("/"), "/");
  EXPECT_EQ(AbsolutePath("./x/"), JoinPath(std::filesystem::current_path().string(), "x/"));
}

TEST_F(FileSystemTest, AFileIsMadeOnceReadWithinALimitAndRemoved) {
  Write(Path("a"), "hello");
  EXPECT_EQ(CodeOf(files_->Create(Path("a")).status()), Code::kAlreadyExists);
  EXPECT_EQ(*files_->ReadAll(Path("a"), 5), "hello");
  EXPECT_EQ(CodeOf(files_->ReadAll(Path("a"), 4).status()), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf(files_->ReadAll(Path("b"), 4).status()), Code::kNotFound);
  EXPECT_EQ((*files_->Open(Path("a")))->GetSize().ValueOrDie(), 5);
  EXPECT_EQ((*files_->Stat(Path("a")))->size, 5);
  EXPECT_TRUE(files_->Remove(Path("a")).ok());
  EXPECT_TRUE(files_->Remove(Path("a")).ok()) << "nothing to remove is no error";
  EXPECT_FALSE(files_->Stat(Path("a"))->has_value());
}

TEST_F(FileSystemTest, RenameReplacesOnlyWhenAsked) {
  Write(Path("a"), "1");
  Write(Path("b"), "2");
  EXPECT_EQ(CodeOf(files_->Rename(Path("a"), Path("b"), false)), Code::kAlreadyExists);
  EXPECT_EQ(*files_->ReadAll(Path("b"), 9), "2");
  EXPECT_TRUE(files_->Rename(Path("a"), Path("b"), true).ok());
  EXPECT_EQ(*files_->ReadAll(Path("b"), 9), "1");
  EXPECT_TRUE(files_->SyncDirectory(directory_).ok());
}

TEST_F(FileSystemTest, DirectoriesAreMadeWithParentsAndListed) {
  EXPECT_TRUE(files_->CreateDirectories(Path("x/y/z")).ok());
  EXPECT_TRUE(files_->CreateDirectories(Path("x/y/z")).ok());
  Write(Path("x/b"), "22");
  Write(Path("x/a"), "1");
  auto entries = files_->List(Path("x")).ValueOrDie();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].size, 2);
  EXPECT_TRUE(entries[2].is_directory);
  EXPECT_FALSE(files_->CreateDirectories(Path("x/a/c")).ok()) << "a file is in the way";
  EXPECT_FALSE(files_->Remove(Path("x")).ok()) << "not empty";
}

TEST_F(FileSystemTest, AListThatFailsInItsMiddleIsNoShorterList) {
  for (const char* name : {"a", "b", "c"}) Write(Path(name), "1");
  for (int entries : {0, 3}) {
    entries_before_failure = entries;
    auto listed = files_->List(directory_);
    entries_before_failure = -1;
    ASSERT_FALSE(listed.ok()) << listed->size() << " of 3";
    EXPECT_NE(listed.status().message().find("cannot list " + directory_), std::string::npos) << listed.status();
  }
  EXPECT_EQ(files_->List(directory_)->size(), 3U);
}

TEST_F(FileSystemTest, ALinkThatLeadsNowhereIsThere) {
  ASSERT_TRUE(files_->CreateDirectories(Path("x")).ok());
  ASSERT_EQ(symlink("nowhere", Path("x/link").c_str()), 0);
  auto entry = files_->Stat(Path("x/link")).ValueOrDie();
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(entry->is_directory);
  EXPECT_EQ(files_->List(Path("x")).ValueOrDie().size(), 1U);
  EXPECT_EQ(CodeOf(files_->ReadAll(Path("x/link"), 9).status()), Code::kNotFound);
  EXPECT_TRUE(files_->Remove(Path("x/link")).ok());
  EXPECT_FALSE(files_->Stat(Path("x/link")).ValueOrDie().has_value());
  // One to itself does not hide the others.
  ASSERT_EQ(symlink("loop", Path("x/loop").c_str()), 0);
  Write(Path("x/a"), "1");
  EXPECT_EQ(files_->List(Path("x")).ValueOrDie().size(), 2U);
  EXPECT_FALSE(files_->ReadAll(Path("x/loop"), 9).ok());
  EXPECT_FALSE(files_->Stat(Path("x/loop/a")).ok()) << "what is below it is not known";
  // One to what is below a file.
  ASSERT_EQ(symlink("a/b", Path("x/below").c_str()), 0);
  EXPECT_TRUE(files_->Stat(Path("x/below")).ValueOrDie().has_value());
}

TEST_F(FileSystemTest, ALockIsHeldUntilItGoes) {
  auto lock = files_->Lock(Path("lock")).ValueOrDie();
  auto second = files_->Lock(Path("lock"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(GetErrorInfo(second.status())->reason, "LOCKED");
  lock.reset();
  EXPECT_TRUE(files_->Lock(Path("lock")).ok());
}

TEST_F(FileSystemTest, AnAtomicWriteIsAllOrNothing) {
  ASSERT_TRUE(WriteFileAtomically(files_, Path("a"), "one", false).ok());
  EXPECT_EQ(CodeOf(WriteFileAtomically(files_, Path("a"), "two", false)), Code::kAlreadyExists);
  EXPECT_EQ(*files_->ReadAll(Path("a"), 9), "one");
  Write(Path(".a.tmp"), "left by a crash");
  ASSERT_TRUE(WriteFileAtomically(files_, Path("a"), "three", true).ok());
  EXPECT_EQ(*files_->ReadAll(Path("a"), 9), "three");
  EXPECT_EQ(files_->List(directory_)->size(), 1U) << "no temporary name is left";
}

TEST_F(FileSystemTest, AFullDiskHasItsReason) {
  // A limit on the size of files is the same to a program as a full disk, and needs no device.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small{.rlim_cur = 4, .rlim_max = before.rlim_max};
  auto file = files_->Create(Path("a")).ValueOrDie();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto status = file->Write("0123456789", 10);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(GetErrorInfo(status)->reason, "DISK_FULL");
  EXPECT_EQ(CodeOf(status), Code::kResourceExhausted);
  EXPECT_NE(status.message().find(Path("a")), std::string::npos);
}

TEST_F(FileSystemTest, AHashingStreamKnowsItsLengthAndSum) {
  HashingOutputStream stream(files_->Create(Path("a")).ValueOrDie());
  ASSERT_TRUE(stream.Write("ab", 2).ok());
  ASSERT_TRUE(stream.Write("c", 1).ok());
  EXPECT_EQ(*stream.Tell(), 3);
  EXPECT_FALSE(stream.Sha256().ok()) << "not closed yet";
  ASSERT_TRUE(stream.Close().ok());
  EXPECT_FALSE(stream.Write("d", 1).ok());
  // FIPS 180-2, appendix B.1
  constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(*stream.Sha256(), kAbc);
  EXPECT_EQ(*Sha256OfFile(files_, Path("a")), kAbc);
}

}  // namespace
}  // namespace headrace
