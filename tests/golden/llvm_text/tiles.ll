; program test
; %b0 weights bf16 weight
; %b1 pieces bf16 temp
; %b2 h f32 state

define void @kernel(ptr noundef %args) #0 {
entry:
  %a7 = alloca [512 x float], align 64
  %a8 = alloca [64 x i8], align 64
  %buffers = load ptr, ptr %args, align 8, !invariant.load !0
  %at0 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %at0, align 8, !invariant.load !0
  %at1 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %at1, align 8, !invariant.load !0
  %at2 = getelementptr inbounds ptr, ptr %buffers, i64 2
  %b2 = load ptr, ptr %at2, align 8, !invariant.load !0
  %at.barrier = getelementptr inbounds i8, ptr %args, i64 8
  %barrier = load ptr, ptr %at.barrier, align 8, !invariant.load !0
  %at.context = getelementptr inbounds i8, ptr %args, i64 16
  %context = load ptr, ptr %at.context, align 8, !invariant.load !0
  %at.worker = getelementptr inbounds i8, ptr %args, i64 24
  %worker = load i32, ptr %at.worker, align 4, !invariant.load !0
  %at.workers = getelementptr inbounds i8, ptr %args, i64 28
  %workers = load i32, ptr %at.workers, align 4, !invariant.load !0
  %v5 = icmp slt i32 0, 4
  br i1 %v5, label %loop0, label %done2
loop0:
  %i3 = phi i32 [ 0, %entry ], [ %i4, %latch1 ]
  %v6 = add nsw i32 %i3, 1
  %v9 = sext i32 %v6 to i64
  %v10 = mul i64 %v9, 282578800148737
  %v11 = or i64 %v10, 1152921504606846976
  store i64 1, ptr %a8, align 8
  %v12 = getelementptr i8, ptr %a8, i64 8
  store i64 0, ptr %v12, align 8
  %v13 = getelementptr i8, ptr %a8, i64 16
  store i64 18014673391583296, ptr %v13, align 8
  %v14 = getelementptr i8, ptr %a8, i64 24
  store i64 18014673391583296, ptr %v14, align 8
  %v15 = getelementptr i8, ptr %a8, i64 32
  store i64 0, ptr %v15, align 8
  %v16 = getelementptr i8, ptr %a8, i64 40
  store i64 0, ptr %v16, align 8
  %v17 = getelementptr i8, ptr %a8, i64 48
  store i64 %v11, ptr %v17, align 8
  %v18 = getelementptr i8, ptr %a8, i64 56
  store i64 0, ptr %v18, align 8
  call void @llvm.x86.ldtilecfg(ptr %a8)
  %v19 = sext i32 %i3 to i64
  %v20 = mul nsw i64 %v19, 1056
  %v21 = getelementptr inbounds i16, ptr %b0, i64 %v20
  %v22 = mul nsw i64 %v19, 1056
  %v23 = add nsw i64 %v22, 528
  %v24 = getelementptr inbounds i16, ptr %b0, i64 %v23
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilezero(i8 1)
  br label %step25
step25:
  %i27 = phi i64 [ 0, %loop0 ], [ %i28, %step25 ]
  %v29 = mul nuw nsw i64 %i27, 3072
  %v30 = getelementptr i8, ptr %b1, i64 %v29
  call void @llvm.x86.tileloadd64(i8 4, ptr %v30, i64 64)
  %v31 = getelementptr i8, ptr %v30, i64 1024
  call void @llvm.x86.tileloadd64(i8 5, ptr %v31, i64 64)
  %v32 = getelementptr i8, ptr %v30, i64 2048
  call void @llvm.x86.tileloadd64(i8 6, ptr %v32, i64 64)
  %v33 = mul nuw nsw i64 %i27, 1024
  %v34 = getelementptr i8, ptr %v21, i64 %v33
  call void @llvm.x86.tileloadd64(i8 7, ptr %v34, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 4, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 5, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 6, i8 7)
  %v35 = mul nuw nsw i64 %i27, 1024
  %v36 = getelementptr i8, ptr %v24, i64 %v35
  call void @llvm.x86.tileloadd64(i8 7, ptr %v36, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 1, i8 4, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 1, i8 5, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 1, i8 6, i8 7)
  %i28 = add nuw nsw i64 %i27, 1
  %v37 = icmp ult i64 %i28, 4
  br i1 %v37, label %step25, label %done26
done26:
  call void @llvm.x86.tilestored64(i8 0, ptr %a7, i64 64)
  %v38 = getelementptr i8, ptr %a7, i64 1024
  call void @llvm.x86.tilestored64(i8 1, ptr %v38, i64 64)
  %v39 = mul nsw i64 %v19, 1056
  %v40 = getelementptr inbounds i16, ptr %b0, i64 %v39
  %v41 = mul nsw i64 %v19, 1056
  %v42 = add nsw i64 %v41, 528
  %v43 = getelementptr inbounds i16, ptr %b0, i64 %v42
  call void @llvm.x86.tileloadd64(i8 0, ptr %a7, i64 64)
  %v44 = getelementptr i8, ptr %a7, i64 1024
  call void @llvm.x86.tileloadd64(i8 1, ptr %v44, i64 64)
  br label %step45
step45:
  %i47 = phi i64 [ 0, %done26 ], [ %i48, %step45 ]
  %v49 = mul nuw nsw i64 %i47, 3072
  %v50 = getelementptr i8, ptr %b1, i64 %v49
  call void @llvm.x86.tileloadd64(i8 4, ptr %v50, i64 64)
  %v51 = getelementptr i8, ptr %v50, i64 1024
  call void @llvm.x86.tileloadd64(i8 5, ptr %v51, i64 64)
  %v52 = getelementptr i8, ptr %v50, i64 2048
  call void @llvm.x86.tileloadd64(i8 6, ptr %v52, i64 64)
  %v53 = mul nuw nsw i64 %i47, 1024
  %v54 = getelementptr i8, ptr %v40, i64 %v53
  call void @llvm.x86.tileloadd64(i8 7, ptr %v54, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 4, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 5, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 6, i8 7)
  %v55 = mul nuw nsw i64 %i47, 1024
  %v56 = getelementptr i8, ptr %v43, i64 %v55
  call void @llvm.x86.tileloadd64(i8 7, ptr %v56, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 1, i8 4, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 1, i8 5, i8 7)
  call void @llvm.x86.tdpbf16ps(i8 1, i8 6, i8 7)
  %i48 = add nuw nsw i64 %i47, 1
  %v57 = icmp ult i64 %i48, 4
  br i1 %v57, label %step45, label %done46
done46:
  call void @llvm.x86.tilestored64(i8 0, ptr %a7, i64 64)
  %v58 = getelementptr i8, ptr %a7, i64 1024
  call void @llvm.x86.tilestored64(i8 1, ptr %v58, i64 64)
  %v59 = getelementptr inbounds float, ptr %a7, i64 256
  %v60 = load <16 x float>, ptr %v59, align 4
  %v61 = mul nsw i64 %v19, 64
  %v62 = getelementptr inbounds float, ptr %b2, i64 %v61
  store <16 x float> %v60, ptr %v62, align 4, !alias.scope !9, !noalias !10
  call void @llvm.x86.tilerelease()
  br label %latch1
latch1:
  %i4 = add nuw nsw i32 %i3, 1
  %v63 = icmp slt i32 %i4, 4
  br i1 %v63, label %loop0, label %done2
done2:
  ret void
}

declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tdpbf16ps(i8 immarg, i8 immarg, i8 immarg)
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilezero(i8 immarg)

attributes #0 = { nounwind "probe-stack"="inline-asm" "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #1 = { nounwind willreturn memory(none) }
attributes #2 = { noinline nounwind "probe-stack"="inline-asm" "prefer-vector-width"="512" "min-legal-vector-width"="512" }

!0 = !{}
!1 = distinct !{!1}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = distinct !{!4, !1}
!5 = !{!2}
!6 = !{!3, !4}
!7 = !{!3}
!8 = !{!2, !4}
!9 = !{!4}
!10 = !{!2, !3}
